use std::sync::Arc;

use super::Session;
use crate::ControllerError;

impl Session {
    /// Looks as the session would when it began now, and writes nothing: its stored record, and the thread that it would be bound to.
    pub(crate) async fn look(&self) -> Result<(), ControllerError> {
        let bound = match &self.refresh().await?.thread {
            Some(thread) => self.find_thread(thread).await?,
            None => None,
        };
        let info = match bound {
            Some(info) => Some(info),
            None => self.pick_thread().await?,
        };
        let (default, now) = (self.shared().config.default_mode.clone(), self.shared().clock.now());
        self.inner().change_view(|view| {
            let record = Arc::make_mut(&mut view.record);
            match &info {
                Some(info) if record.thread.as_ref() == Some(&info.id) => {}
                Some(info) => record.rebind(&info.id, &default, now, |mode| self.shared().config.mode(mode).is_some()),
                None => record.thread = None,
            }
        });
        let Some(info) = info else { return Ok(()) };
        let brought = self.brought(&info.id).await?;
        self.feed().show(Some(info.id.clone()), |state| brought.into_view(state));
        self.show_queue(&info.id, false);
        Ok(())
    }
}
