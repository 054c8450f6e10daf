/** Whoever asks over HTTP: a browser by what only it knows, or any program that is paired. */
export type Asker = { browser: string } | 'paired'

/** What is remembered at a device. */
export interface LaneState {
  receipt?: { text: string; atMs: number }
  operatorSession?: string
  /** As the last policy had it. */
  wasGate?: boolean
  /** Who opened that session over HTTP. A badge or card at the device itself shows no browser: then any that may ask acts under it. */
  openedBy?: Asker | undefined
}

/** The session at a device, for whoever may act under it: not for a program beside the browser in which somebody has signed in. */
export function sessionFor({ operatorSession, openedBy }: LaneState, from: Asker | undefined): string | undefined {
  if (openedBy === undefined || from === undefined || from === 'paired') return operatorSession
  return openedBy !== 'paired' && openedBy.browser === from.browser ? operatorSession : undefined
}
