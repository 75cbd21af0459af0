//! `serve`: the program as a server, until its client or the system ends it.

use rmcp::ServiceExt as _;

use crate::cli::args::{ServeArgs, Transport};
use crate::cli::{Ending, host, out};

/// Serves until standard input ends, or a signal comes.
pub(crate) async fn serve(args: ServeArgs) -> Result<(), Ending> {
    let built = host::build(&args.host).await?;
    let server = built.server.clone();
    let done = tokio::select! {
        done = async {
            match args.transport {
                Transport::Stdio => stdio(&server).await,
                Transport::Http => http(&server, &args).await,
            }
        } => done,
        () = server.watch() => Ok(()),
    };
    built.close().await;
    done
}

async fn stdio(server: &haversack_skill_server::SkillServer) -> Result<(), Ending> {
    let served = async {
        let service = server.handler().serve(rmcp::transport::io::stdio_pipes()).await?;
        service.waiting().await?;
        Ok(())
    };
    tokio::select! {
        done = served => done,
        () = ended() => Ok(()),
    }
}

/// Comes when the system asks the program to end.
async fn ended() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            return;
        }
    }
    // Without a handler the system ends the program by itself.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

#[cfg(feature = "http")]
async fn http(server: &haversack_skill_server::SkillServer, args: &ServeArgs) -> Result<(), Ending> {
    use haversack_skill_server::http::{BearerToken, HttpOptions, HttpServer, PATH};

    let flags = &args.http;
    let mut options = HttpOptions::default()
        .with_allowed_hosts(flags.allow_host.iter().cloned())
        .with_allowed_origins(flags.allow_origin.iter().cloned())
        .with_max_body_bytes(flags.max_body)
        .with_caps(flags.max_requests, flags.max_sessions);
    if let Some(file) = &flags.bearer_token_file {
        let unusable = |why: String| Ending::Usage(format!("{}: {why}", file.display()));
        let token = std::fs::read_to_string(file).map_err(|error| unusable(error.to_string()))?;
        options = options.with_bearer(BearerToken::new(&token).map_err(|error| unusable(error.to_string()))?);
    } else if !flags.host.is_loopback() {
        let text = format!("{} can be reached from other machines; give a --bearer-token-file", flags.host);
        return Err(Ending::Usage(text));
    }
    let handler = server.handler();
    let address = std::net::SocketAddr::new(flags.host, flags.port);
    let http = HttpServer::bind(address, options, move || handler.clone()).await;
    let http = http.map_err(|error| Ending::Failed(format!("{address}: {error}")))?;
    // Not part of the log: whoever gave port 0 has to learn the port.
    out::say(&format!("serving at http://{}{PATH}", http.address()));
    http.run(ended()).await;
    Ok(())
}

#[cfg(not(feature = "http"))]
async fn http(_server: &haversack_skill_server::SkillServer, _args: &ServeArgs) -> Result<(), Ending> {
    Err(Ending::Usage("this program was built without HTTP (feature `http`)".to_owned()))
}
