import { deviceTypeTexts } from '../texts/catalogue.ts'
import type { Texts } from '../texts/texts.ts'
import type { PageDevice, PageRegistrationFault, PageStatus } from './wire.ts'

/** `STORE_TIME_ZONE` of the policy, which browsers cannot load. */
const TIME_ZONE = 'Europe/Berlin'

/** Formats a time of day with seconds, in the time zone of the store. */
export function clockTime(atMs: number, language: string): string {
  return new Intl.DateTimeFormat(language, {
    hour: '2-digit',
    minute: '2-digit',
    second: '2-digit',
    hourCycle: 'h23',
    timeZone: TIME_ZONE,
  }).format(atMs)
}

/** Formats a time of day, in the time zone of the store. */
export function minuteTime(atMs: number, language: string): string {
  const format = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23', timeZone: TIME_ZONE } as const
  return new Intl.DateTimeFormat(language, format).format(atMs)
}

/** Formats a day with its time, in the time zone of the store. */
export function dayTime(atMs: number, language: string): string {
  return new Intl.DateTimeFormat(language, {
    day: 'numeric',
    month: 'long',
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
    timeZone: TIME_ZONE,
  }).format(atMs)
}

type BadgeTone = 'good' | 'warn' | 'bad'

/** Short state of the agent in the header. */
interface Badge {
  tone: BadgeTone
  text: string
}

/** Important message under the header. */
interface Banner {
  tone: 'warn' | 'bad'
  text: string
}

interface StatusView {
  badges: Badge[]
  banners: Banner[]
}

const DEVICE_TONES: Record<PageDevice['state'], BadgeTone> = {
  absent: 'bad',
  opening: 'warn',
  identifying: 'warn',
  ready: 'good',
  degraded: 'bad',
  stopped: 'bad',
  unknown_device: 'bad',
  device_of_another_agent: 'bad',
  decommissioned_device: 'bad',
}

/** Who reads the banners of a screen. Without a signed-in operator it may be a shopper. */
interface Reader {
  /** Wall clock. */
  nowMs: number
  isStaff: boolean
}

/** Makes badges and banners of a status. Only signed-in staff read what is wrong and whom to call. */
export function statusView(status: PageStatus, deviceId: string, texts: Texts, { nowMs, isStaff }: Reader): StatusView {
  const device = status.devices.find((d) => d.deviceId === deviceId)
  return {
    badges: [
      connection(status, texts, nowMs),
      ...waiting(status, texts),
      ...policy(status, texts),
      ...clock(status, texts),
      ...deviceBadge(status, device, texts),
      ...doorBadge(device, texts),
    ],
    banners: [
      ...emergency(status, deviceId, texts, isStaff),
      ...forReader(
        [
          ...fault(status, texts),
          ...doubt(status, texts),
          ...tooOld(status, texts),
          ...withoutItems(status, texts),
          ...deviceBanner(device, texts),
          ...feederBanners(status, deviceId, texts),
          ...findings(status, deviceId, texts, isStaff),
        ],
        isStaff,
        texts,
      ),
      ...doorBanner(device, texts),
    ],
  }
}

/** Shoppers read whether they need staff, and staff that the screen has more for them. */
function forReader(banners: Banner[], isStaff: boolean, { forShoppers }: Texts): Banner[] {
  const [first] = banners
  if (isStaff || !first) return banners
  const isBad = banners.some(({ tone }) => tone === 'bad')
  return [isBad ? { tone: 'bad', text: forShoppers.fault } : { tone: 'warn', text: forShoppers.note }]
}

/** View without a connection to the agent. The view does not show the last status, which may be outdated. */
export function lostView(texts: Texts, sinceMs: number, isStaff: boolean): StatusView {
  const since = texts.lostSince(minuteTime(sinceMs, texts.language))
  return {
    badges: [{ tone: 'bad', text: texts.lost.what }],
    banners: [{ tone: 'bad', text: `${since} ${isStaff ? texts.lost.todo : texts.forShoppers.lost}` }],
  }
}

/** True for an exit at which no device reads tags. */
export function isWithoutReader({ findings: found }: Pick<PageDevice, 'findings'>): boolean {
  return found.some(({ code }) => code === 'no_tag_reader')
}

/** Name of a device, or its type if it has no name. */
export function deviceTitle(device: PageDevice, texts: Texts): string {
  return device.name ?? deviceTypeTexts(texts, device.deviceType).name
}

/** State of a device, with a fix if the agent refuses requests for the device, or with its findings. */
export function deviceState(device: Pick<PageDevice, 'deviceId' | 'state' | 'findings'>, texts: Texts): string {
  const found = device.findings.map(({ code }) => texts.findings[code]).join(' ')
  const fix = registrationFix(device, texts) ?? (found === '' ? undefined : found)
  const state = texts.deviceStates[device.state]
  return fix === undefined ? state : `${state}: ${fix}`
}

/**
 * The driver's message or its findings, in English. '' for a device that the agent refuses, because `deviceState` shows
 * the fix.
 */
export function deviceDetail(
  device: Pick<PageDevice, 'deviceId' | 'state' | 'detail' | 'findings'>,
  texts: Texts,
): string {
  if (registrationFix(device, texts) !== undefined) return ''
  return device.findings.length === 0 ? device.detail : device.findings.map(findingText).join('; ')
}

/** Fix for a device that the agent refuses. Undefined for other devices. */
function registrationFix(
  { deviceId, state }: Pick<PageDevice, 'deviceId' | 'state'>,
  { registrationFixes }: Texts,
): string | undefined {
  return state in registrationFixes ? registrationFixes[state as PageRegistrationFault](deviceId) : undefined
}

function connection({ online, offlineSince }: PageStatus, texts: Texts, nowMs: number): Badge {
  if (online) return { tone: 'good', text: texts.online }
  if (offlineSince === null) return { tone: 'warn', text: texts.offline }
  return { tone: 'warn', text: `${texts.offline} ${texts.since(Math.max(0, nowMs - Date.parse(offlineSince)))}` }
}

function waiting({ queueDepth, online }: PageStatus, texts: Texts): Badge[] {
  return queueDepth === 0 ? [] : [{ tone: online ? 'good' : 'warn', text: texts.eventsWait(queueDepth) }]
}

function policy({ policyVersion, stage: policyStage, neededRelease }: PageStatus, texts: Texts): Badge[] {
  if (policyVersion === null) return [{ tone: 'bad', text: texts.noPolicy }]
  // If this agent is too old for the newest policy, the page shows the agent's policy as stale.
  const stage = policyStage === 'fresh' && neededRelease !== null ? 'stale' : policyStage
  return stage === 'fresh' ? [] : [{ tone: stage === 'stale' ? 'warn' : 'bad', text: texts.policy(stage) }]
}

function clock({ clock: trust }: PageStatus, texts: Texts): Badge[] {
  return trust === 'none' ? [{ tone: 'bad', text: texts.clockUntrusted }] : []
}

/** A lane is as healthy as the worst device that serves it. */
function deviceBadge({ devices }: PageStatus, device: PageDevice | undefined, texts: Texts): Badge[] {
  if (!device) return []
  const away = devices.find(({ feeds, state }) => feeds === device.deviceId && DEVICE_TONES[state] === 'bad')
  if (away && device.state === 'ready') return [{ tone: 'bad', text: texts.deviceStates.degraded }]
  if (device.state === 'ready' && isWithoutReader(device)) return [{ tone: 'warn', text: texts.gate.noTagReader }]
  return [{ tone: DEVICE_TONES[device.state], text: texts.deviceStates[device.state] }]
}

function doorBadge(device: PageDevice | undefined, texts: Texts): Badge[] {
  if (!device?.door) return []
  const tone = device.door === 'shut' ? 'good' : device.door === 'open' ? 'warn' : 'bad'
  return [{ tone, text: texts.doors[device.door] }]
}

/** Banner that stays until the door is shut. Results on the stage disappear earlier. */
function doorBanner(device: PageDevice | undefined, texts: Texts): Banner[] {
  if (device?.door !== 'forced' && device?.door !== 'left_open') return []
  const { what, todo } = texts.alarms[`door_${device.door}`]
  return [{ tone: 'bad', text: `${what} ${todo}` }]
}

function emergency({ emergency: state }: PageStatus, deviceId: string, texts: Texts, isStaff: boolean): Banner[] {
  if (!state) return []
  const { opened, elsewhere, lost } = texts.emergency
  const what = state.opened.includes(deviceId) ? opened : elsewhere
  return [{ tone: 'bad', text: isStaff && state.lost.length > 0 ? `${what} ${lost(state.lost.join(', '))}` : what }]
}

function fault({ fault: why }: PageStatus, texts: Texts): Banner[] {
  const { what, todo } = texts.requestFailed.ledger_unavailable
  return why === null ? [] : [{ tone: 'bad', text: `${what} ${todo}` }]
}

function doubt({ ledgerDoubt }: PageStatus, texts: Texts): Banner[] {
  return ledgerDoubt === null
    ? []
    : [{ tone: ledgerDoubt === 'put_back' ? 'warn' : 'bad', text: texts.ledgerDoubts[ledgerDoubt] }]
}

function tooOld({ neededRelease }: PageStatus, texts: Texts): Banner[] {
  return neededRelease === null ? [] : [{ tone: 'warn', text: texts.tooOld(neededRelease) }]
}

function withoutItems({ items }: PageStatus, texts: Texts): Banner[] {
  return items.ageSeconds === null ? [{ tone: 'warn', text: texts.withoutItems }] : []
}

function findingText({ code, detail }: PageDevice['findings'][number]): string {
  return `${code}: ${detail}`
}

/** Findings of this device and of the devices that feed it. At a barrier without a reader, shoppers miss nothing. */
function findings({ devices }: PageStatus, deviceId: string, texts: Texts, isStaff: boolean): Banner[] {
  return devices
    .filter((device) => device.deviceId === deviceId || device.feeds === deviceId)
    .flatMap((device) =>
      device.findings
        .filter(({ code }) => isStaff || code !== 'no_tag_reader')
        .map((finding) => ({
          tone: finding.isWarning ? 'warn' : 'bad',
          // Drivers explain findings in English only. The set-up page shows that text as a technical detail.
          text: `${texts.findings[finding.code]} (${device.deviceId}, ${texts.language === 'en' ? findingText(finding) : finding.code})`,
        })),
    )
}

/** A gate or lane whose reader is away must not look ready. */
function feederBanners({ devices }: PageStatus, deviceId: string, texts: Texts): Banner[] {
  return devices
    .filter(({ feeds, state, findings: found }) => feeds === deviceId && state !== 'ready' && found.length === 0)
    .map((device) => ({ tone: 'bad', text: texts.feederAway(device.deviceId) }))
}

function deviceBanner(device: PageDevice | undefined, texts: Texts): Banner[] {
  // A device with findings is connected; `findings` shows what is wrong.
  if (!device || DEVICE_TONES[device.state] !== 'bad' || device.findings.length > 0) return []
  const fix = registrationFix(device, texts)
  if (fix !== undefined) return [{ tone: 'bad', text: `${texts.deviceStates[device.state]}. ${fix}` }]
  return [{ tone: 'bad', text: texts.deviceAway }]
}
