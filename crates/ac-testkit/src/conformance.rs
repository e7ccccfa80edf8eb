//! What every store must keep to, as tests with names.
//!
//! ```ignore
//! ac_testkit::storage_conformance!(my_store, async { MyStore::open(tempdir()).await.unwrap() });
//! ac_testkit::kv_conformance!(my_kv, async { MyKv::open(tempdir()).await.unwrap() });
//! ```
//!
//! Each macro makes a module with one `#[test]` per rule, on a tokio runtime of its own; each test gets an instance of its own from the expression. A rule is also a
//! public function that answers with a [`Violation`], for harnesses of another kind; [`storage_rules`] and [`kv_rules`] list them.
//!
//! That no rule is idle is tested: for each there is a planted defect in [`store::broken`](crate::store::broken) that it finds.

mod commit;
mod fixture;
mod kv;
mod lease;
mod message;
mod run;
mod session;
mod state;
mod thread;

use std::fmt;

use ac_storage::{Kv, Storage, StorageError};
use futures::future::BoxFuture;

/// The rules, as functions.
pub mod rules {
    pub use super::{commit::*, kv::*, lease::*, message::*, run::*, session::*, state::*, thread::*};
}

/// How a store broke a rule.
#[derive(Clone, PartialEq, Eq)]
pub struct Violation(String);

/// What a rule answers.
pub type Verdict = Result<(), Violation>;

impl Violation {
    /// A violation, in words.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Violation {}

/// An operation that the rule needs did not work.
impl From<StorageError> for Violation {
    fn from(error: StorageError) -> Self {
        Self(format!("unexpected {}: {error}", error.code()))
    }
}

/// A rule for a [`Storage`].
#[derive(Clone, Copy)]
pub struct StorageRule {
    /// Its name, which says it.
    pub name: &'static str,
    /// Checks a fresh, empty store.
    pub check: fn(&dyn Storage) -> BoxFuture<'_, Verdict>,
}

/// A rule for a [`Kv`].
#[derive(Clone, Copy)]
pub struct KvRule {
    /// Its name, which says it.
    pub name: &'static str,
    /// Checks a fresh, empty backend.
    pub check: fn(&dyn Kv) -> BoxFuture<'_, Verdict>,
}

/// Checks a rule on a runtime of its own, so that the crate under test needs none.
///
/// # Errors
/// As the rule, or when there can be no runtime.
pub fn run(rule: impl Future<Output = Verdict>) -> Verdict {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Violation::new(format!("no runtime: {error}")))?.block_on(rule)
}

/// One `#[test]` per rule for a [`Storage`], in a module of this name. The expression is a future of a fresh, empty store.
#[macro_export]
macro_rules! storage_conformance {
    ($name:ident, $make:expr) => {
        $crate::__storage_rules! { __conformance_tests ($name, $make) }
    };
}

/// One `#[test]` per rule for a [`Kv`], in a module of this name. The expression is a future of a fresh, empty backend.
#[macro_export]
macro_rules! kv_conformance {
    ($name:ident, $make:expr) => {
        $crate::__kv_rules! { __conformance_tests ($name, $make) }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __conformance_tests {
    (($name:ident, $make:expr) $($rule:ident)*) => {
        mod $name {
            #[allow(unused_imports)]
            use super::*;
            $(
                #[test]
                fn $rule() -> Result<(), $crate::conformance::Violation> {
                    $crate::conformance::run(async {
                        let fresh = $make.await;
                        $crate::conformance::rules::$rule(&fresh).await
                    })
                }
            )*
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __storage_rule_list {
    (() $($rule:ident)*) => {
        vec![$($crate::conformance::StorageRule { name: stringify!($rule), check: |store| Box::pin($crate::conformance::rules::$rule(store)) }),*]
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __kv_rule_list {
    (() $($rule:ident)*) => {
        vec![$($crate::conformance::KvRule { name: stringify!($rule), check: |kv| Box::pin($crate::conformance::rules::$rule(kv)) }),*]
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __storage_rules {
    ($callback:ident $args:tt) => {
        $crate::$callback! { $args
            a_new_thread_reads_back
            a_thread_id_is_taken_once
            a_thread_is_updated_on_its_version_only
            a_thread_shows_when_it_was_last_written_to
            threads_are_listed_newest_first
            thread_pages_show_every_thread_once
            threads_are_listed_by_resource_and_metadata
            hidden_threads_are_listed_when_asked_for_and_child_threads_never
            a_deleted_thread_is_gone_with_all_that_is_its_own
            a_deleted_thread_stays_deleted
            a_thread_with_a_run_is_not_deleted
            deleting_a_thread_leaves_the_others_alone
            ids_may_be_any_text

            messages_keep_the_order_in_which_they_were_put
            a_message_reads_back_as_it_was_put
            a_large_message_reads_back
            putting_the_same_message_again_changes_nothing
            a_message_is_not_put_over_another
            a_message_is_put_on_the_version_of_the_head_only
            no_message_is_put_beside_an_open_run
            message_pages_go_both_ways
            a_copy_holds_what_stands_before_a_message
            a_copy_makes_a_thread_of_its_own

            a_start_takes_the_thread
            a_thread_has_one_run_at_a_time
            a_run_starts_once
            a_commit_is_made_on_the_version_of_the_record_only
            a_commit_that_conflicts_writes_nothing
            a_finished_run_keeps_the_thread_and_a_closed_one_lets_go
            a_closed_run_never_touches_the_head_again
            a_message_of_a_model_is_replaced_where_it_stands
            any_other_message_is_insert_only
            usage_adds_up
            a_commit_needs_its_thread
            of_many_commits_on_one_version_one_is_made
            a_record_is_kept_as_it_is
            a_large_text_reads_back_in_message_and_record

            open_runs_are_listed_until_they_are_closed
            open_run_pages_show_every_run_once
            the_open_run_of_a_thread_is_found
            the_open_runs_of_a_session_are_found
            only_old_closed_runs_are_pruned
            no_run_is_pruned_before_its_parent_is_closed

            a_lease_has_one_holder
            a_lease_ends_with_its_time
            a_lease_of_an_older_epoch_is_void
            a_lease_is_renewed_by_its_holder
            only_the_holder_gives_a_lease_back
            a_closed_run_has_no_lease
            of_many_who_want_a_lease_one_gets_it

            a_session_is_saved_on_its_version_only
            a_session_is_kept_as_it_is
            sessions_are_listed_by_controller
            a_deleted_session_is_gone_and_its_threads_stay

            state_is_written_on_its_version_only
            state_belongs_to_its_thread_and_name
            state_needs_its_thread
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __kv_rules {
    ($callback:ident $args:tt) => {
        $crate::$callback! { $args
            a_value_reads_back
            versions_count_the_writes_since_the_key_was_absent
            a_write_is_done_only_if_its_expectation_holds
            a_batch_is_done_as_a_whole_or_not_at_all
            keys_and_values_may_be_any_bytes
            a_large_value_reads_back
            a_scan_is_in_the_order_of_bytes
            a_scan_sees_its_prefix_only
            a_scan_begins_beyond_a_key
            a_scan_ends_at_its_limit
            of_many_writes_on_one_version_one_is_done
        }
    };
}

/// Every rule for a [`Storage`].
pub fn storage_rules() -> Vec<StorageRule> {
    __storage_rules! { __storage_rule_list () }
}

/// Every rule for a [`Kv`].
pub fn kv_rules() -> Vec<KvRule> {
    __kv_rules! { __kv_rule_list () }
}
