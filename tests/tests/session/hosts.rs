//! What a host gets from its controllers besides sessions that answer.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use ac_controller::{CatalogModel, ControllerError, ControllerErrorKind, Host, Interval, SessionRequest, TitleGenerator};
use ac_core::{EventBody, ModelError, ModelErrorKind, ModelId, SessionKey};
use ac_storage::domain::{MessageQuery, ThreadQuery};
use ac_testkit::{Turn, server::turn::Match};
use serde_json::json;

use crate::desk::{Desk, build_mode, is_end, until};

/// Two controllers on one store share nothing but the store.
#[tokio::test]
async fn controllers_of_a_host_are_isolated() {
    let desk = Desk::new([Turn::tool("c1", "ask_user", json!({ "question": "?" })), Turn::text("b says")]);
    let build = |id: &str| desk.builder(id).id(id.to_owned()).modes(build_mode());
    let host = Host::builder().storage(desk.storage.clone()).controller(build("a")).controller(build("b")).build().unwrap();
    host.init().await.unwrap();
    assert_eq!(host.controllers().map(|controller| controller.id().as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(host.controller("c").unwrap_err().code(), "controller.not_found");
    let (a, b) = (host.controller("a").unwrap(), host.controller("b").unwrap());
    let in_a = a.create_session("ann").await.unwrap();
    in_a.send_message("ask me").await.unwrap();
    let in_b = b.create_session("ann").await.unwrap();
    assert_ne!(in_a.thread_id(), in_b.thread_id(), "the newest thread of the resource is another controller's");
    in_b.set_state([("k".to_owned(), json!(1))].into_iter().collect()).await.unwrap();
    assert!(in_a.state().is_empty());
    assert_eq!((a.pending().await.unwrap().len(), b.pending().await.unwrap().len()), (1, 0));
    let theirs = in_a.thread_id().unwrap();
    assert_eq!(in_b.switch_thread(&theirs).await.unwrap_err().code(), "thread.not_found");
    assert_eq!(b.create_session(SessionRequest::new("ann").thread(theirs.clone())).await.unwrap_err().code(), "thread.not_found");
    assert!(b.thread(&theirs).await.unwrap().is_none());
    assert_eq!(in_b.threads(ThreadQuery::default()).await.unwrap().items.len(), 1);
    let answer = ac_controller::Answer::Reply { value: json!("x") };
    let open = a.pending().await.unwrap().remove(0);
    assert_eq!(b.answer(&open.id, answer).await.unwrap_err().code(), "answer.not_pending");
    in_b.send_message("hello").await.unwrap();
    assert_eq!(in_b.messages(None, MessageQuery::default()).await.unwrap().items.len(), 2);
    host.shutdown().await;
    let twice = Host::builder().storage(desk.storage.clone()).controller(build("a")).controller(build("a")).build();
    assert_eq!(twice.unwrap_err().code(), "config.duplicate_controller");
    assert_eq!(Host::builder().controller(ac_controller::AgentController::builder()).build().unwrap_err().code(), "config.no_modes");
}

/// Scopes of one resource differ in everything but whose threads they have.
#[tokio::test]
async fn scopes_differ_in_state_mode_model_thread_and_events() {
    let desk = Desk::new([]);
    let controller = desk.open("");
    let scoped = |scope: &str| SessionRequest::new("ann").scope(scope.to_owned());
    let (a, b) = (controller.create_session(scoped("a")).await.unwrap(), controller.create_session(scoped("b")).await.unwrap());
    assert_eq!(controller.create_session(scoped("a")).await.unwrap(), a);
    assert_ne!(a, b);
    let mut events = b.subscribe();
    a.switch_mode("build").await.unwrap();
    a.switch_model("prov/other").await.unwrap();
    a.set_state([("k".to_owned(), json!(1))].into_iter().collect()).await.unwrap();
    assert_eq!((b.mode().as_str(), b.model().unwrap().as_str(), b.state().len()), ("plan", "prov/planner", 0));
    assert!(crate::desk::drain(&mut events).is_empty(), "another scope's events are another's");
    assert_ne!(a.thread_id(), b.thread_id());
    assert_eq!(a.threads(ThreadQuery::default()).await.unwrap().items.len(), 2, "threads are the resource's");
    controller.shutdown().await;
}

#[tokio::test]
async fn listeners_hear_of_each_session_once() {
    let desk = Desk::new([]);
    let controller = desk.open("");
    let heard = Arc::new(Mutex::new(vec![]));
    let note = |what: &'static str| {
        let heard = heard.clone();
        move |session: ac_controller::Session| {
            let heard = heard.clone();
            async move {
                tokio::time::sleep(Duration::from_millis(20)).await;
                heard.lock().unwrap().push(format!("{what} {} {}", session.resource(), session.thread_id().is_some()));
                Err(ControllerError::new(ControllerErrorKind::NoModel, "a failure of a listener is its own"))
            }
        }
    };
    controller.on_session_created_blocking(note("made"));
    controller.on_session_created_blocking(|_| async { panic!("a listener that breaks breaks nothing else") });
    let removed = controller.on_session_created_blocking(note("never"));
    controller.on_session_deleted(note("gone"));
    assert!(controller.remove_listener(removed) && !controller.remove_listener(removed));
    let all = futures::future::join_all((0..8).map(|_| controller.create_session("ann"))).await;
    assert!(all.iter().all(Result::is_ok));
    assert_eq!(*heard.lock().unwrap(), ["made ann true"], "who gets the session gets it after the listener");
    controller.delete_session(&SessionKey::new("ann")).await.unwrap();
    assert!(!controller.delete_session(&SessionKey::new("nobody")).await.unwrap());
    controller.create_session("ann").await.unwrap();
    tokio::time::sleep(Duration::from_millis(200)).await;
    let heard = heard.lock().unwrap().clone();
    assert_eq!((heard.len(), heard.iter().filter(|line| line.starts_with("gone ann")).count()), (3, 1), "{heard:?}");
    controller.shutdown().await;
}

/// SPEC C-20.
#[tokio::test]
async fn handlers_tick_while_the_controller_runs() {
    let (ticks, ends) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let make = |id: &str, by: usize| {
        let (ticks, ends) = (ticks.clone(), ends.clone());
        Interval::new(id.to_owned(), Duration::from_millis(5), move || {
            ticks.fetch_add(by, Ordering::Relaxed);
            async { Err(ControllerError::new(ControllerErrorKind::NoModel, "tried again")) }
        })
        .on_shutdown(move || {
            ends.fetch_add(1, Ordering::Relaxed);
            async {}
        })
    };
    let desk = Desk::new([]);
    let controller = desk.builder("").modes(build_mode()).interval(make("x", 1)).build().unwrap();
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert_eq!(ticks.load(Ordering::Relaxed), 0, "not before init");
    controller.init().await.unwrap();
    tokio::time::sleep(Duration::from_millis(60)).await;
    let small = ticks.load(Ordering::Relaxed);
    assert!((2..1000).contains(&small), "{small}");
    controller.register_interval(make("x", 1000)).await;
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(ends.load(Ordering::Relaxed), 1, "the replaced one ends");
    assert!(ticks.load(Ordering::Relaxed) > 1000);
    controller.register_interval(make("late", 1_000_000).delayed()).await;
    assert!(controller.remove_interval("late").await && !controller.remove_interval("late").await);
    controller.shutdown().await;
    assert_eq!(ends.load(Ordering::Relaxed), 3);
    let after = ticks.load(Ordering::Relaxed);
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert_eq!(ticks.load(Ordering::Relaxed), after);
}

#[tokio::test]
async fn the_catalogue_is_listed_once_with_use_and_keys() {
    let desk = Desk::new([Turn::text("ok").forever()]);
    let models = vec![
        CatalogModel::new("prov/builder").used(3),
        CatalogModel::new("a/first").without_key(Some("A_KEY".into())),
        CatalogModel::new("prov/builder"),
    ];
    let controller = desk.builder("").modes(build_mode()).model_catalog(models).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    session.send_message("go").await.unwrap();
    let listed = controller.models().await.unwrap();
    assert_eq!(
        serde_json::to_value(&listed).unwrap(),
        json!([
            { "id": "a/first", "provider": "a", "modelName": "first", "hasApiKey": false, "apiKeyVar": "A_KEY", "useCount": 0 },
            { "id": "prov/builder", "provider": "prov", "modelName": "builder", "hasApiKey": true, "useCount": 4 },
        ])
    );
    assert!(session.model_auth().await.unwrap().has_auth);
    session.switch_model("a/first").await.unwrap();
    let auth = session.model_auth().await.unwrap();
    assert_eq!((auth.has_auth, auth.api_key_var.as_deref()), (false, Some("A_KEY")));
    assert_eq!(controller.known_resources().await.unwrap(), ["ann".into()]);
    controller.shutdown().await;

    struct Broken(AtomicUsize);
    #[async_trait::async_trait]
    impl ac_controller::ModelCatalog for Broken {
        async fn models(&self) -> Result<Vec<CatalogModel>, ModelError> {
            match self.0.fetch_add(1, Ordering::Relaxed) {
                0 => Err(ModelError::new(ModelErrorKind::Connect, "away")),
                _ => Ok(vec![CatalogModel::new("x/y")]),
            }
        }
    }
    let desk = Desk::new([]);
    let controller = desk.builder("").modes(build_mode()).model_catalog(Broken(AtomicUsize::new(0))).build().unwrap();
    assert_eq!(controller.models().await.unwrap_err().code(), "models.unavailable");
    assert_eq!(controller.models().await.unwrap()[0].id, ModelId::from("x/y"), "a failure is not remembered");
    controller.shutdown().await;
    let controller = desk.open("x");
    let named: Vec<_> = controller.models().await.unwrap().into_iter().map(|model| model.id.to_string()).collect();
    assert_eq!(named, ["prov/builder", "prov/planner"]);
    controller.shutdown().await;
}

fn names_it(text: &str) -> Turn {
    Turn::text(text).when(Match { model: Some("namer".into()), ..Match::default() })
}

fn answers(text: &str) -> Turn {
    Turn::text(text).when(Match { model: Some("builder".into()), ..Match::default() })
}

/// SPEC C-42, H-31, H-36.
#[tokio::test]
async fn threads_get_a_title_once_and_a_persons_title_stays() {
    let desk = Desk::new([
        answers("fixed"),
        names_it("\"Fixing the login\"\n"),
        answers("more"),
        answers("x"),
        names_it("Renamed"),
        names_it(" "),
    ]);
    let titles = TitleGenerator::new().model("prov/namer");
    let controller = desk.builder("").modes(build_mode()).titles(titles).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    let thread = session.thread_id().unwrap();
    assert_eq!(session.generate_title(None, None).await.unwrap_err().code(), "title.nothing_to_name");
    let mut events = session.subscribe();
    session.send_message("the login is broken").await.unwrap();
    until(&mut events, |body| matches!(body, EventBody::ThreadTitleUpdated { title, .. } if title == "Fixing the login")).await;
    let asked = desk.server.requests()[1].body["messages"].to_string();
    assert!(asked.contains("the login is broken") && asked.contains("fixed"), "{asked}");
    session.send_message("go on").await.unwrap();
    assert_eq!(desk.server.requests().len(), 3, "a thread with a title is not named again");

    session.create_thread(None, "").await.unwrap();
    session.rename_thread(None, "Mine").await.unwrap();
    session.send_message("hello").await.unwrap();
    until(&mut events, is_end).await;
    let mine = session.thread(&session.thread_id().unwrap()).await.unwrap();
    assert_eq!((mine.title.as_str(), &mine.metadata["titlePinned"]), ("Mine", &json!(true)));
    assert_eq!(session.generate_title(Some(&thread), None).await.unwrap().as_deref(), Some("Renamed"), "asked for, it is named anew");
    assert_eq!(session.generate_title(Some(&thread), None).await.unwrap(), None);
    assert_eq!(session.thread(&thread).await.unwrap().title, "Renamed");
    controller.shutdown().await;
}

#[tokio::test]
async fn a_branch_goes_up_to_its_message_and_with_it() {
    let desk = Desk::new([Turn::text("one"), Turn::text("two")]);
    let controller = desk.builder("").modes(build_mode()).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    let thread = session.thread_id().unwrap();
    session.send_message("m1").await.unwrap();
    session.send_message("m2").await.unwrap();
    let all = session.messages(None, MessageQuery::default()).await.unwrap().items;
    assert_eq!(all.len(), 4);
    let texts = |items: &[ac_storage::record::StoredMessage]| items.iter().map(|m| m.message.text()).collect::<Vec<_>>();
    for (at, expected) in [(1, vec!["m1", "one"]), (3, vec!["m1", "one", "m2", "two"])] {
        let branch = session.branch_thread(Some(&thread), &all[at].message.id, None).await.unwrap();
        assert_eq!(session.thread_id(), Some(branch.id));
        assert_eq!(texts(&session.messages(None, MessageQuery::default()).await.unwrap().items), expected);
    }
    assert_eq!(session.branch_thread(Some(&thread), &"none".into(), None).await.unwrap_err().code(), "message.not_found");
    assert_eq!(texts(&session.messages(Some(&thread), MessageQuery::default()).await.unwrap().items).len(), 4);
    controller.shutdown().await;
}
