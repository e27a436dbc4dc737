// Starts `statecore lsp` for SLS files. All else is the server's.
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

async function start() {
  const settings = vscode.workspace.getConfiguration("statecore");
  // The scope "machine" keeps a workspace from naming a command of its own.
  const [command, ...args] = settings.get("command");
  const initializationOptions = {};
  for (const name of ["fileRoots", "pillar", "grains", "id"]) {
    initializationOptions[name] = settings.get(name);
  }
  client = new LanguageClient(
    "statecore",
    "statecore",
    { command, args },
    { documentSelector: [{ scheme: "file", language: "sls" }, { scheme: "file", pattern: "**/*.{jinja,j2}" }], initializationOptions },
  );
  await client.start();
}

exports.activate = async (context) => {
  context.subscriptions.push(
    vscode.workspace.onDidChangeConfiguration(async (event) => {
      if (event.affectsConfiguration("statecore")) {
        await exports.deactivate();
        await start();
      }
    }),
  );
  await start();
};

exports.deactivate = async () => {
  const running = client;
  client = undefined;
  await running?.stop();
};
