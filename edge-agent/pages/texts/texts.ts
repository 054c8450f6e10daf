import type { FindingCode } from '../../../device-drivers/kit/device.ts'
import type { AlarmStep, DenyReason, DeviceType, ItemStatus, ProtectionAction } from '../../../policy/vocabulary.ts'
import type { Language } from '../../../policy/page-language.ts'
import type {
  NotUnderstood,
  PageAlarm,
  PageDevice,
  PageRegistrationFault,
  PageStatus,
  PageTestedOutput,
} from '../model/wire.ts'
import type { DeviceFinding, SearchCause } from '../../setup/device-discovery.ts'

/** Texts of the set-up page. */
export interface SetupTexts {
  title: string
  configured: string
  check: string
  checkHint: string
  /** How to change or remove a device. */
  changeHint(file: string): string
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
  /** After a rejected form with a code. */
  codeUnused: string
  /** Mark of a field that must be filled in. */
  required: string
  /** Mark of the code: a device that only reads may have an id instead. */
  codeOrId: string
  missing: string
  /** Fault of a field, for languages in which the drivers do not explain it. */
  unfit: string
  outside(range: string): string
  addHint(file: string): string
  code: string
  codeHint: string
  type: string
  name: string
  add: string
  added(name: string, file: string): string
  restartNeeded(file: string): string
  /** What to do after a device was added. */
  next: Record<'test' | 'reader' | 'read' | 'restart', string>
  openPage: string
  pages: string
  noEntry: string
  kinds: Record<DeviceFinding, string>
  network: string
  networkHint: string
  address: string
  look: string
  failed: string
  noAddress: string
  change: string
  saveChange: string
  remove: string
  removeQuestion: string
  removed: string
  changed(file: string): string
  changedInUse(file: string): string
  searchCauses: Record<SearchCause, string>
  /** Why a device was not added or tested, by the error code of the agent. */
  problems: Readonly<Record<string, string>>
  test: string
  testHint: string
  outputs: Record<PageTestedOutput, string>
  tested: Record<'confirmed' | 'failed' | 'unknown' | 'not_supported', string>
  walk: string
  walkHint(seconds: number): string
  /** In place of the walk test of a gate without a reader of tags. */
  noWalk: string
  /** Result of a walk: the tags that the gate read, saw leave, and for which it alarmed. */
  walked(tags: number, left: number, alarms: number): string
}

/** Formats a number with its noun in singular or plural. German and English have these two forms. */
export function pluralOf(language: string): (count: number, one: string, other: string) => string {
  const rules = new Intl.PluralRules(language)
  return (count, one, other) => `${count} ${rules.select(count) === 'one' ? one : other}`
}

/** `what`: what happened. `todo`: what to do next. */
export interface Advice {
  what: string
  todo: string
}

export interface DeviceTypeTexts {
  name: string
  /** What to do at the device, in a few words. */
  prompt: string
  hint: string
}

/** Kind of a problem page. */
export type Problem = 'notFound' | 'forPrograms' | 'hostNotAllowed' | 'unavailable'

/** All texts of the pages. The build fails if a language lacks a text. */
export interface Texts {
  language: Language
  languageName: string
  needsScript: string

  deviceTypes: Record<DeviceType, DeviceTypeTexts>
  anyDevice: DeviceTypeTexts
  chooseDevice: string
  noDevices: string
  noSuchDevice: string
  stationPage: string
  gatePage: string
  notHere: Advice
  problems: Record<Problem, Advice>
  /** Label before technical messages, which are in English. */
  technical: string
  pair: Record<'title' | 'what' | 'run' | 'command' | 'open' | 'paste' | 'send' | 'wrong' | 'programs', string>

  online: string
  offline: string
  since(ms: number): string
  eventsWait(count: number): string
  policy(stage: Exclude<PageStatus['stage'], 'fresh'>): string
  noPolicy: string
  clockUntrusted: string
  deviceStates: Record<PageDevice['state'], string>
  /** What to do about a device that the agent refuses. */
  registrationFixes: Record<PageRegistrationFault, (deviceId: string) => string>
  doors: Record<NonNullable<PageDevice['door']>, string>
  deviceAway: string
  /** A reader that serves this device is not connected. */
  feederAway(deviceId: string): string
  /** What a finding at a device means for staff. */
  findings: Record<FindingCode, string>
  /**
   * Texts for an emergency that opens this device (`opened`) or other devices (`elsewhere`). `lost`: unreadable
   * emergency inputs, for staff. `title` and `leave`: a station, in place of the invitation to scan. `leaveElsewhere`: a
   * gate that the emergency does not open.
   */
  emergency: {
    opened: string
    elsewhere: string
    title: string
    leave: Advice
    leaveElsewhere: string
    lost(devices: string): string
  }
  tooOld(release: string): string
  /** The agent has no complete copy of the items yet. */
  withoutItems: string
  ledgerDoubts: Record<NonNullable<PageStatus['ledgerDoubt']>, string>
  /** Texts for staff on a page without a connection to the agent. */
  lost: Advice
  /** Banners in place of those for staff while no operator is signed in: shoppers read the screen. */
  forShoppers: { fault: string; note: string; lost: string }
  /** Since when the agent does not answer. */
  lostSince(time: string): string
  /** When a list that is no longer updated was right. */
  asOf(time: string): string
  /** Texts for the shopper if nothing could check the scan. */
  notChecked: Advice

  /** State of the sound, on the button that changes it. */
  soundOn: string
  soundOff: string
  fullScreen: string

  busy: string
  granted: Record<ProtectionAction, string>
  labelsLeft(count: number): string
  /** The goods whose labels are left. */
  stillOn(goods: string): string
  /** After a list of goods: the number of the others. */
  andMore(count: number): string
  /** An item without category and brand. */
  item: string
  allDone(count: number): string
  /** Beside labels that the shopper may release: goods of the receipt whose labels only staff release. */
  moreForStaff(count: number): string
  /** Goods of the receipt whose labels only staff release, after the last label that the shopper may release. */
  leftForStaff(count: number): string
  restNeedsStaff: string
  refused: string
  /** Headline for a receipt without tagged goods. */
  nothingToRelease: string
  callStaff: string
  unknown: Advice & { why: string }
  failed: Advice & { why: string }
  reasons: Record<DenyReason, Advice>
  noReason: string
  /** `headline`: what is, in few words. */
  notUnderstood: Record<NotUnderstood, Advice & { headline: string }>
  /** Texts after the device has read a receipt: the shopper presents the goods next. */
  receiptRead: Advice
  alreadyReleased: string
  nothingLeft: string
  nothingLeftSince(when: string, deviceName: string | undefined): string
  nothingLeftAdvice: string
  alarms: Record<PageAlarm, Advice>
  /** Texts by the status of an order. */
  orders: Readonly<Record<string, Advice>>
  unknownOrder: Advice
  itemStatuses: Record<ItemStatus, string>
  statusUnknown: string
  decidedOffline: string
  last(time: string): string

  nextLabel: string
  tryAgain: string
  approve: string
  approveThenScan: string
  done: string

  typeCode: string
  check: string
  tooLong: string
  requestFailed: Record<'unreachable' | 'ledger_full' | 'ledger_unavailable' | 'other', Advice>

  signIn: string
  signOut: string
  signedInAs(name: string): string
  whoAreYou: string
  badgeToo: string
  signInFor: string
  noOperators: string
  badgeOnly: string
  pin: string
  pinOf(name: string): string
  deleteDigit: string
  confirm: string
  close: string
  back: string
  wrongPin: string
  pinTooShort: string
  lockedFor(seconds: number): string
  signInFailed: string

  setup: SetupTexts

  gate: {
    ready: string
    readyHint: string
    /** The gate or a reader of it has a fault. */
    outHint: string
    /** State of an exit that works and has no reader of tags. */
    noTagReader: string
    /** An emergency opened this gate. */
    wayOut: string
    wayOutHint: string
    green: string
    greenHint: string
    amber: string
    amberHint: string
    alarm: string
    stuck: string
    lost: string
    lostHint: string
    lastDecisions: string
    /** The number of open alarms for which the list has no room. `isCut`: there may be even more. */
    moreOpen(count: number, isCut: boolean): string
    noDecisions: string
    /** Back to the begin of the list. */
    toNewest: string
    /** Marks of an alarm whose goods stay, whatever receipt the shopper has. */
    recalled: string
    held: string
    /** Mark of an alarm. */
    inEmergency: string
    /** Where the list begins, and where older alarms are. */
    listSince(start: string): string
    /** The list lacks open alarms, and where they are. */
    listCut: string
    recovered: string
    /** How an amount is written. */
    amountLike: string
    noAmount: string
    handle: string
    change: string
    careBy(name: string): string
    handleTitle(time: string): string
    /** `cause`: the recorded cause and its person. */
    recorded(cause: string): string
    steps: Record<AlarmStep, string>
    tooLate: string
    /** After a lost connection: the agent does not have the cause that was chosen. */
    notStored: string
  }
}
