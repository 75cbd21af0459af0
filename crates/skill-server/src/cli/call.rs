//! `call`: one skill, once.

use crate::cli::args::CallArgs;
use crate::cli::{Ending, host, out};

/// Calls a skill and prints what it gives back. Progress goes to the log.
pub(crate) async fn call(args: CallArgs) -> Result<(), Ending> {
    let built = host::build(&args.host).await?;
    let told = |note: &str| tracing::info!("{note}");
    let result = tokio::select! {
        result = built.server.call(&args.skill, args.arguments, told) => result,
        _ = tokio::signal::ctrl_c() => {
            built.close().await;
            return Err(Ending::Failed("interrupted".to_owned()));
        }
    };
    built.close().await;
    let result = result?;
    if args.json {
        out::json(&result)?;
    } else {
        for text in result.content.iter().filter_map(|content| content.as_text()) {
            out::line(&text.text)?;
        }
    }
    if result.is_error == Some(true) { Err(Ending::Told) } else { Ok(()) }
}
