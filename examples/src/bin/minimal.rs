//! The smallest host: a model, a folder, one task. It only reads, so nobody has to be asked.
//!
//! ```sh
//! cargo run --bin minimal -- http://127.0.0.1:8080/v1 my-model "What does this project do?"
//! ```

use futures_util::StreamExt as _;
use haversack::fs_tools::FsTools;
use haversack::prelude::*;
use haversack::{Haversack, http::ReqwestClient, providers::presets::openai_compatible};
use haversack_examples::terminal::plain;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [url, model, task] = <[String; 3]>::try_from(std::env::args().skip(1).collect::<Vec<_>>())
        .map_err(|_| "usage: minimal BASE_URL MODEL TASK")?;
    let model = openai_compatible(ReqwestClient::new()?, url, model);
    let haversack = Haversack::builder(model).fs_tools(FsTools::new(".").read_only()).build()?;
    let (equipped, mut session) = (haversack.prepare().await?, Session::default());
    let mut run = equipped.start(&mut session, task);
    while let Some(event) = run.next().await {
        if let Event::Text { delta, .. } = event {
            print!("{}", plain(&delta));
        }
    }
    println!("\n{:?}", run.outcome().await?);
    Ok(())
}
