// The extension: starts the language server, and the debugger where one is asked for.

import * as vscode from "vscode";
import { LanguageClient, type LanguageClientOptions, type ServerOptions } from "vscode-languageclient/node";

/** Languages of the server. */
const LANGUAGES = ["chipless-dfg", "chipless-asm", "chipless-iospec", "chipless-workload", "chipless-plan", "chipless-machine"];

/** JSON files that are Chipless' by their names. */
const JSON_FILES = "**/*.{network,schedule,adg}.json";

let client: LanguageClient | undefined;

/** The command, as the settings have it. */
function command(): string {
  return vscode.workspace.getConfiguration("chipless").get<string>("path") || "chipless";
}

async function start(): Promise<void> {
  const server: ServerOptions = { command: command(), args: ["lsp"] };
  const options: LanguageClientOptions = {
    documentSelector: [...LANGUAGES.map((language) => ({ language })), { language: "json", pattern: JSON_FILES }],
    outputChannelName: "Chipless",
  };
  client = new LanguageClient("chipless", "Chipless", server, options);
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    const set = "Set the path";
    const text = `Chipless: \`${command()} lsp\` did not start: ${error instanceof Error ? error.message : error}. Install chipless, or set chipless.path.`;
    if ((await vscode.window.showErrorMessage(text, set)) === set) {
      await vscode.commands.executeCommand("workbench.action.openSettings", "chipless.path");
    }
  }
}

async function stop(): Promise<void> {
  const running = client;
  client = undefined;
  await running?.stop();
}

/** Fills in what a launch without a configuration lacks. */
class Configurations implements vscode.DebugConfigurationProvider {
  resolveDebugConfiguration(_folder: vscode.WorkspaceFolder | undefined, configuration: vscode.DebugConfiguration): vscode.DebugConfiguration | undefined {
    if (configuration.type) {
      return configuration;
    }
    const file = vscode.window.activeTextEditor?.document.uri.fsPath;
    if (file === undefined) {
      void vscode.window.showInformationMessage("Chipless: open a program, or add a launch configuration with `program`.");
      return undefined;
    }
    return { type: "chipless", request: "launch", name: "Debug this program", program: file, stopOnEntry: true };
  }
}

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  context.subscriptions.push(
    vscode.debug.registerDebugAdapterDescriptorFactory("chipless", {
      createDebugAdapterDescriptor: () => new vscode.DebugAdapterExecutable(command(), ["debug", "--dap"]),
    }),
    vscode.debug.registerDebugConfigurationProvider("chipless", new Configurations()),
    vscode.commands.registerCommand("chipless.restart", async () => {
      await stop();
      await start();
    }),
    vscode.commands.registerCommand("chipless.debug", async (file?: vscode.Uri) => {
      const program = file ?? vscode.window.activeTextEditor?.document.uri;
      if (program !== undefined) {
        await vscode.debug.startDebugging(undefined, { type: "chipless", request: "launch", name: "Debug this program", program: program.fsPath, stopOnEntry: true });
      }
    }),
    vscode.workspace.onDidChangeConfiguration(async (changed) => {
      if (changed.affectsConfiguration("chipless.path")) {
        await stop();
        await start();
      }
    }),
  );
  await start();
}

export async function deactivate(): Promise<void> {
  await stop();
}
