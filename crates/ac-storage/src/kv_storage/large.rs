use ac_core::{Message, ThreadId};
use serde::Deserialize;

use super::KvStorage;
use crate::{
    Expect, Kv, RunRecord, StorageError, StorageErrorKind, Stored, Versioned, Write, keys,
    large::{self, Cut, Texts},
    row::{self, LargeText, Row},
};

impl<K: Kv> KvStorage<K> {
    /// A message as it is stored, without its long texts, which `texts` takes.
    pub(super) fn cut_message(&self, message: &Message, texts: &mut Texts) -> Result<Cut, StorageError> {
        let json = row::text::<Message>(message)?;
        let (cut, cut_out) = large::cut(&json, |_| true);
        texts.take(cut_out);
        Ok(cut)
    }

    /// A record as it is stored: it refers to the long texts that the messages of its thread have, and keeps all others.
    pub(super) async fn cut_record(&self, record: &RunRecord, texts: &Texts) -> Result<Vec<u8>, StorageError> {
        let json = row::text::<RunRecord>(record)?;
        let mut stored = Vec::new();
        for span in large::find(&json) {
            let hash = large::hash(json.get(span).unwrap_or_default());
            if texts.knows(&hash) || self.kv.get(&keys::large_text(&record.header.thread, &hash)).await?.is_some() {
                stored.push(hash);
            }
        }
        Ok(large::cut(&json, |hash| stored.iter().any(|known| known == hash)).0.encode::<RunRecord>())
    }

    /// The writes of long texts. They expect nothing: what stands under a hash is what has that hash.
    pub(super) fn put_texts(&self, thread: &ThreadId, texts: Texts) -> Result<Vec<Write>, StorageError> {
        texts
            .into_new()
            .map(|(hash, json)| {
                let text = serde_json::value::RawValue::from_string(json);
                let text = text.map_err(|_| StorageError::new(StorageErrorKind::Corrupt, "a long text is no JSON; nothing was stored"))?;
                self.put::<LargeText>(keys::large_text(thread, &hash), Expect::Any, &LargeText(text))
            })
            .collect()
    }

    /// Reads a row that may be cut.
    pub(crate) async fn decode_cut<R: Row>(&self, thread: &ThreadId, stored: &Versioned) -> Result<R, StorageError> {
        let Some(cut) = Cut::read::<R>(&stored.value) else { return self.decode(stored) };
        let mut texts = Vec::with_capacity(cut.large.len());
        for (_, hash) in &cut.large {
            match self.read::<LargeText>(&keys::large_text(thread, hash)).await? {
                Some(text) => texts.push(text.value.0.get().to_owned()),
                None => return Err(self.lost_text::<R>(thread).await),
            }
        }
        match cut.join::<R>(&texts) {
            Some(whole) => self.decode(&Versioned { version: stored.version, value: whole.into() }),
            None => Err(StorageError::new(
                StorageErrorKind::Corrupt,
                format!("a {} row in {} refers to long texts in places that it does not have; it was left as it is", R::KIND, self.name),
            )),
        }
    }

    pub(crate) async fn decode_record(&self, stored: &Versioned) -> Result<RunRecord, StorageError> {
        #[derive(Deserialize)]
        struct Record {
            header: Header,
        }
        #[derive(Deserialize)]
        struct Header {
            thread: ThreadId,
        }
        if Cut::read::<RunRecord>(&stored.value).is_none() {
            return self.decode(stored);
        }
        let thread = row::peek::<RunRecord, Record>(&self.name, stored)?.header.thread;
        self.decode_cut(&thread, stored).await
    }

    pub(super) async fn read_record(&self, run: &ac_core::RunId) -> Result<Option<Stored<RunRecord>>, StorageError> {
        match self.kv.get(&keys::run(run)).await? {
            None => Ok(None),
            Some(stored) => match self.decode_record(&stored).await {
                // Its thread was deleted between the two looks; the record goes next.
                Err(error) if error.kind() == StorageErrorKind::Deleted => Ok(None),
                value => Ok(Some(Stored { version: stored.version, value: value? })),
            },
        }
    }

    /// A text is not there: its thread was deleted meanwhile, or the store is damaged.
    pub(super) async fn lost_text<R: Row>(&self, thread: &ThreadId) -> StorageError {
        match self.live_head(thread).await {
            Err(error) => error,
            Ok(_) => StorageError::new(
                StorageErrorKind::Corrupt,
                format!(
                    "a {} row in {} refers to a long text that is missing; it was left as it is: restore it from a backup or an export",
                    R::KIND,
                    self.name
                ),
            ),
        }
    }
}
