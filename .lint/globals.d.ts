// What scripts of a page share.
interface Window {
  /** The host of the widgets in a built page. */
  labsHost?: { close(): Promise<void> };
  /** The texts of stored modules, by key. */
  labsModules?: Record<string, string>;
}
