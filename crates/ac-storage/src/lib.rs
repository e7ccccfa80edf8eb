//! Durability for agent-controller: a three-method key-value contract, five domain stores over it, memory and sled.
#![deny(missing_docs)]
