//! Users share the pace of questions: one user's loop does not silence another.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use http::StatusCode;
use tokio::time::sleep;

use super::https::tell;

/// How many connections of the tenant ask at a time.
const LOOPS: usize = 4;
/// What the operator asks, at a rate that is well below half of the pace of 10 in a second.
const QUESTIONS: usize = 30;
const PAUSE: Duration = Duration::from_millis(350);
/// More than a burst of 20, so that the loops are above their pace when the operator begins.
const REFUSALS_FIRST: usize = 20;

#[tokio::test]
async fn a_tenants_loop_does_not_silence_the_operator() {
    tell(async |story| {
        let role = Some("corridor-api-reader");
        for namespace in ["team-loop", "operators"] {
            story.plane.kubectl(&["create", "namespace", namespace]).await.unwrap();
        }
        let tenant = story.token_of("team-loop", "script", role).await;
        let operator = story.token_of("operators", "person", role).await;
        let (is_over, refused) = (AtomicBool::new(false), AtomicUsize::new(0));
        let loops = async || {
            while !is_over.load(Ordering::Relaxed) {
                let reply = story.what_if(&tenant).await;
                if reply.status == StatusCode::TOO_MANY_REQUESTS {
                    refused.fetch_add(1, Ordering::Relaxed);
                }
            }
        };
        let asks = async {
            while refused.load(Ordering::Relaxed) < REFUSALS_FIRST {
                sleep(Duration::from_millis(50)).await;
            }
            let mut answered = 0;
            for _ in 0..QUESTIONS {
                answered += usize::from(story.what_if(&operator).await.status == 200);
                sleep(PAUSE).await;
            }
            is_over.store(true, Ordering::Relaxed);
            answered
        };
        let tenants = futures::future::join_all((0..LOOPS).map(|_| loops()));
        let (answered, _) = futures::future::join(asks, tenants).await;
        assert_eq!(answered, QUESTIONS, "while the tenant was refused {refused:?} times");
    })
    .await;
}
