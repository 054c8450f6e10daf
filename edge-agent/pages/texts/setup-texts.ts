import type { PageTestedOutput } from '../model/wire.ts'

/** Texts of the set-up page. */
export interface SetupTexts {
  title: string
  configured: string
  check: string
  checkHint: string
  attached: string
  nothingAttached: string
  entryHint: string
  entry: string
  addHint(file: string): string
  code: string
  codeHint: string
  type: string
  name: string
  add: string
  added(name: string, file: string): string
  restartNeeded(file: string): string
  noEntry: string
  kinds: Record<'serial' | 'nfc' | 'llrp', string>
  llrp: string
  address: string
  look: string
  failed: string
  /** Why a device was not added or tested, by the error code of the agent. */
  problems: Readonly<Record<string, string>>
  test: string
  testHint: string
  outputs: Record<PageTestedOutput, string>
  tested: Record<'confirmed' | 'failed' | 'unknown' | 'not_supported', string>
  walk: string
  walkHint(seconds: number): string
  /** Result of a walk: the tags that the gate read, saw leave, and for which it alarmed. */
  walked(tags: number, left: number, alarms: number): string
}
