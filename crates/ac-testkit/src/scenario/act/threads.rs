//! Threads, their messages and settings.

use ac_controller::{AgentController, Session};
use ac_core::{ThreadId, wire};
use ac_storage::{
    RunStage,
    domain::{MessageQuery, OpenRuns, ThreadQuery},
};
use serde_json::{Value, json};

use super::{Args, Done, Trouble};
use crate::scenario::{file::Verb, finish, stage::Cast};

pub(super) async fn act(session: &Session, verb: Verb, args: &Args) -> Done {
    Ok(match verb {
        Verb::ThreadCreate => {
            let id = args.text("id").or(args.text("threadId")).map(ThreadId::from);
            Some(wire::thread(&session.create_thread(id, args.text("title").unwrap_or_default()).await?))
        }
        Verb::ThreadSwitch => {
            session.switch_thread(&args.needed("threadId")?.into()).await?;
            Some(json!({ "threadId": session.thread_id(), "mode": session.mode(), "model": session.model() }))
        }
        Verb::ThreadClone => {
            let source = args.text("sourceThreadId").or(args.text("threadId")).map(ThreadId::from);
            let until = args.text("untilMessageId").map(Into::into);
            let title = args.text("title").map(str::to_owned);
            Some(wire::thread(&session.clone_thread(source.as_ref(), title, until.as_ref()).await?))
        }
        Verb::ThreadList => {
            let mut query = ThreadQuery { hidden: args.flag("includeForkedSubagents"), ..ThreadQuery::default() };
            query.metadata = args.map("metadata");
            Some(session.threads(query).await?.items.iter().map(wire::thread).collect())
        }
        Verb::ThreadDelete => {
            session.delete_thread(&args.needed("threadId")?.into()).await?;
            Some(json!({ "threadId": session.thread_id() }))
        }
        Verb::ThreadRename => {
            session.rename_thread(None, args.text("title").unwrap_or_default()).await?;
            None
        }
        Verb::ThreadMessages => Some(messages(session, session.thread_id(), args).await?),
        Verb::ThreadMessagesOf => Some(messages(session, Some(args.needed("threadId")?.into()), args).await?),
        Verb::ThreadId => Some(json!(session.thread_id())),
        Verb::SetSetting => {
            session.set_thread_setting(None, args.needed("key")?, args.get("value").cloned()).await?;
            None
        }
        Verb::GetSetting => session.thread_settings(None).await?.get(args.needed("key")?).cloned(),
        other => return Err(Trouble::Driver(format!("{other:?} is not about threads"))),
    })
}

async fn messages(session: &Session, thread: Option<ThreadId>, args: &Args) -> Result<Value, Trouble> {
    let Some(thread) = thread else { return Ok(json!([])) };
    let limit = args.get("limit").and_then(Value::as_u64).and_then(|limit| usize::try_from(limit).ok()).unwrap_or(0);
    let query = MessageQuery { newest_first: limit > 0, limit, ..MessageQuery::default() };
    let mut page = session.messages(Some(&thread), query).await?.items;
    if limit > 0 {
        page.reverse();
    }
    Ok(finish::messages(&page, &thread, session.resource()))
}

pub(super) async fn query(controller: &AgentController, args: &Args) -> Done {
    let query = ThreadQuery {
        resource: args.text("resourceId").map(Into::into),
        metadata: args.map("metadata"),
        hidden: args.flag("includeForkedSubagents"),
        ..ThreadQuery::default()
    };
    Ok(Some(controller.threads(&query).await?.items.iter().map(wire::thread).collect()))
}

pub(super) async fn active_runs(cast: &Cast) -> Done {
    let open = cast.storage.runs().open(&OpenRuns::default()).await.map_err(|error| Trouble::Driver(error.to_string()))?;
    let runs = open.items.iter().filter(|run| run.stage == RunStage::Open && run.parent.is_none());
    Ok(Some(runs.map(|run| json!({ "runId": run.run, "resourceId": run.session.resource, "threadId": run.thread })).collect()))
}
