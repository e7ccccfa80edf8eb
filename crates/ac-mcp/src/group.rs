//! A server's process and everything that it started end together.

use std::{
    io,
    pin::Pin,
    process::ExitStatus,
    sync::{Arc, Mutex, PoisonError},
};

use process_wrap::tokio::{ChildWrapper, CommandWrap, CommandWrapper};
use rustix::process::{Pid, Signal, kill_process_group};

/// The process group of a server. A launcher may end and leave behind what it launched.
#[derive(Clone, Debug, Default)]
pub(super) struct Group(Arc<Mutex<Option<Pid>>>);

impl Group {
    fn leader(&self, pid: Option<Pid>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = pid;
    }

    /// Ends what is left of it, once: later the number may be another group's.
    pub(super) fn end(&self) {
        if let Some(leader) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // An error says that nobody is left.
            let _nobody_left = kill_process_group(leader, Signal::KILL);
        }
    }
}

/// Puts a server's process into a [`Group`] that ends when it does.
#[derive(Debug)]
pub(super) struct Ends(pub(super) Group);

impl CommandWrapper for Ends {
    fn wrap_child(&mut self, inner: Box<dyn ChildWrapper>, _core: &CommandWrap) -> io::Result<Box<dyn ChildWrapper>> {
        self.0.leader(inner.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw));
        Ok(Box::new(Leader { inner, group: EndsGroup(self.0.clone()) }))
    }
}

#[derive(Debug)]
struct Leader {
    inner: Box<dyn ChildWrapper>,
    group: EndsGroup,
}

#[derive(Debug)]
struct EndsGroup(Group);

impl Drop for EndsGroup {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl ChildWrapper for Leader {
    fn inner(&self) -> &dyn ChildWrapper {
        self.inner.as_ref()
    }

    fn inner_mut(&mut self) -> &mut dyn ChildWrapper {
        self.inner.as_mut()
    }

    fn into_inner(self: Box<Self>) -> Box<dyn ChildWrapper> {
        self.inner
    }

    fn wait(&mut self) -> Pin<Box<dyn Future<Output = io::Result<ExitStatus>> + Send + '_>> {
        Box::pin(async {
            let ended = self.inner.wait().await;
            if ended.is_ok() {
                self.group.0.end();
            }
            ended
        })
    }
}
