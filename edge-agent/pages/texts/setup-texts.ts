import type { DeviceFinding } from '../../setup/device-discovery.ts'
import type { PageTestedOutput } from '../model/wire.ts'

/** Texts of the set-up page. */
export interface SetupTexts {
  title: string
  configured: string
  check: string
  checkHint: string
  attached: string
  nothingAttached: string
  /** Why the page cannot save devices. */
  entryHint: string
  entry: string
  /** Heading that opens the form of a found device. */
  setUp: string
  /** Form for a device that the agent did not find. */
  byHand: string
  byHandHint: string
  driver: string
  deviceId: string
  deviceIdHint: string
  settings: string
  moreSettings: string
  details: string
  detailsHint: string
  notSet: string
  yes: string
  no: string
  /** Allowed numbers of a setting. */
  range(from: string, to: string): string
  /** Value that counts if the setting is empty. */
  otherwise(value: string): string
  /** Names the marked fields. */
  correct(fields: string): string
  addHint(file: string): string
  code: string
  codeHint: string
  type: string
  name: string
  add: string
  added(name: string, file: string): string
  restartNeeded(file: string): string
  /** What to do after a device was added. */
  next: Record<'test' | 'read' | 'restart', string>
  openPage: string
  pages: string
  noEntry: string
  kinds: Record<DeviceFinding, string>
  network: string
  networkHint: string
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
