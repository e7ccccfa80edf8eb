//! Kit for testing against agent-controller: scripted model server, injected ids and clock, faulty stores, conformance suites.
#![deny(missing_docs)]
