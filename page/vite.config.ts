import { defineConfig } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

// One file with everything in it: Chipless embeds it and puts a run's data into its two data elements.
export default defineConfig({
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: { target: "es2022", reportCompressedSize: false },
  plugins: [viteSingleFile({ removeViteModuleLoader: true })],
});
