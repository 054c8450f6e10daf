import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { actuators } from '../nodes/actuators.ts'
import { agentNode, type AgentNode } from '../nodes/agent-node.ts'
import { answerOracle } from '../oracles/answer-oracle.ts'
import { chanceOf } from '../virtual/chance.ts'
import { cloudNode } from '../nodes/cloud-node.ts'
import { cloudOracle } from '../oracles/cloud-oracle.ts'
import type { Core, Violation } from '../virtual/core.ts'
import { checkEnd, isSettled, type EndParts } from '../end-checks.ts'
import type { Shop } from '../nodes/genesis.ts'
import { newLan } from '../virtual/lan.ts'
import { ledgerOracle, type LedgerOracle } from '../oracles/ledger-oracle.ts'
import { merchant, type Json } from '../nodes/merchant.ts'
import { receiver } from '../nodes/receiver.ts'
import { rulesOracle } from '../oracles/rules-oracle.ts'
import { scheduler } from '../virtual/scheduler.ts'
import { newTrace } from '../virtual/trace.ts'
import { newWire } from '../virtual/wire.ts'
import { AGENTS, READER } from './day-shop.ts'
import { gateReader } from './gate-reader.ts'
import { LOCKED_CATEGORY, newGoods, shelves, STAFF_BRAND, STAFF_FROM_PRICE } from './goods.ts'
import { checkReleases, unitsReleasedBy } from './releases.ts'
import { shoppers } from './shoppers.ts'
import { newTally, type Tally } from './tally.ts'
import { planOf, timetable, WHOLE_DAY } from './timetable.ts'

export interface DayOptions {
  seed: number
  shoppers: number
  /** How long the store is open; a shorter day has all that the whole one (11) has; at least 1. */
  hours?: number
  /** Lines of the trace that are kept. */
  keepLines?: number
  /** Every quarter of an hour of the day. */
  onProgress?(progress: DayProgress): void
}

export interface DayProgress {
  /** The store's own time, such as `12:15`. */
  readonly time: string
  /** What it is doing. */
  readonly tally: Tally
}

export interface DayResult {
  readonly seed: number
  readonly shoppers: number
  readonly violations: readonly Violation[]
  /** The same for two runs in which the same happened. */
  readonly hash: string
  readonly steps: number
  readonly tally: Tally
  /** Units whose tags came off, as the ledgers say. */
  readonly unitsReleased: number
  /** Rows of the three journals. */
  readonly journalRows: number
  /** Offline answers to a receipt that were compared with the policy, and how many were stricter. */
  readonly offline: { readonly compared: number; readonly stricter: number }
  readonly lines: readonly string[]
}

const MINUTE_MS = 60_000
/** The morning after the shop was made, in the store's own time (Berlin, one hour before UTC). */
const MIDNIGHT_MS = Date.UTC(2026, 10, 20, 23)
const HOUR_MS = 60 * MINUTE_MS
/** The machines are switched on, and the goods of the night registered, so long before opening. */
const BEFORE_MS = 40 * MINUTE_MS
const GOODS_IN_CALL = 500
/** More goods than are planned for, so that nobody finds the shelves empty. */
const SPARE_GOODS = 50
/** Everything must have arrived so long after closing at the latest. */
const SETTLED_WITHIN_MS = 30 * MINUTE_MS
/** Rules about category, brand and price: of each, some goods need staff or another device. */
const DAY_RULES = {
  allowedActionsByCategory: {
    '*': {
      detach_hard_tag: ['self_service', 'staff_assisted'],
      deactivate_label: ['staff_assisted'],
      authorize_exit: ['automatic_exit'],
    },
    [LOCKED_CATEGORY]: { deactivate_label: ['staff_assisted'], authorize_exit: ['automatic_exit'] },
  },
  requiresStaffForBrand: [STAFF_BRAND],
  requiresManualOverrideAboveValue: STAFF_FROM_PRICE,
  // One operator serves the whole day.
  operatorOverridesPerHour: 1_000,
}
/** Offline answers that are stricter than the policy because a fact was unknown, at most. */
const STRICTER_SHARE = 0.02

/** Runs one day of a store that `makeDayShop` made: the same seed, the same day. The first violation ends it. */
export async function runDay(shop: Shop, options: DayOptions): Promise<DayResult> {
  const { seed } = options
  const opensMs = MIDNIGHT_MS + WHOLE_DAY.opensHour * HOUR_MS
  const startMs = opensMs - BEFORE_MS
  const chance = chanceOf(seed)
  const violations: Violation[] = []
  const clock = scheduler(startMs, chance.fork('scheduler'))
  const trace = newTrace(() => clock.nowMs, opensMs, options.keepLines ?? 60)
  const folder = mkdtempSync(join(shop.templates.cloud, '..', `day-${seed}-`))
  const core: Core = {
    scheduler: clock,
    chance,
    trace,
    folder,
    violate(invariant, detail) {
      trace.note('VIOLATED', `${invariant}: ${detail}`)
      violations.push({ invariant, detail, atMs: clock.nowMs - opensMs })
    },
    crashRate: 0,
  }
  const isOver = () => violations.length > 0
  const tally = newTally()
  const plan = planOf(options.hours ?? WHOLE_DAY.hours)
  const people = timetable(options.shoppers, plan, chance.fork('timetable'))

  let crashes = 0
  const cloudWatch = cloudOracle(core)
  const answers = answerOracle(core)
  const posts = receiver(core, () => crashes)
  const cloud = cloudNode({
    core,
    keyFiles: shop.keyFiles,
    outgoing: posts.outgoing,
    template: shop.templates.cloud,
    onCommit: cloudWatch.committed,
    onAnswer: answers.answered,
  })

  const agents: AgentNode[] = []
  const ledgers = new Map<string, LedgerOracle>()
  const devices = actuators({ ...core, onRelease: (name, deviceId) => ledgers.get(name)?.released(deviceId) })
  const reader = gateReader(devices, AGENTS.gate, READER, clock)
  const lan = newLan(core)
  for (const [n, { identity, config }] of shop.agents.entries()) {
    const name = `agent-${n + 1}`
    const ledger = ledgerOracle(name, core, {
      ...cloudWatch,
      lostWith: () => undefined,
      isClockSure: () => agents[n]?.wasInTouch === true,
      onRow: ({ body }) => tally.row(body, clock.nowMs),
    })
    ledgers.set(name, ledger)
    agents.push(
      agentNode({
        core,
        name,
        identity,
        config: () => config,
        template: shop.templates.agents[n] ?? '',
        cloud,
        wire: newWire(name, core),
        actuators: reader,
        lan,
        onCommit: ledger.committed,
        onStart: ledger.processEnded,
      }),
    )
  }
  const [station, detacher, gate] = agents
  if (!station || !detacher || !gate) throw new Error('the shop of the day has three agents')

  const system = merchant({ core, server: cloud, wire: newWire('shop', core), name: 'merchant', apiKey: shop.key })
  const outage = { fromMs: opensMs + plan.outage.fromMs, toMs: opensMs + plan.outage.toMs }
  const units = people.reduce((sum, shopper) => sum + shopper.units, 0)
  const stock = newGoods(shop.products, units + SPARE_GOODS)
  const rules = rulesOracle({ core, reading: () => cloud.disk.reading, isCalm: true })
  const crowd = shoppers({
    core,
    rules,
    shop,
    merchant: system,
    agents: { station, detacher, gate },
    reader,
    goods: shelves(stock, chance.fork('shelves')),
    tally,
  })
  const end: EndParts = {
    core,
    cloud,
    agents,
    ledgers,
    people: { ...crowd, resold: new Set() },
    receiver: posts,
    money: undefined,
    shop,
  }

  /** Runs until the work is done; what fails ends the day. */
  async function until(what: string, work: Promise<unknown>, withinMs: number): Promise<void> {
    let isDone = false
    work.then(
      () => void (isDone = true),
      (error: unknown) => core.violate('fault', `${what}: ${(error as Error).stack}`),
    )
    await clock.run(clock.nowMs + withinMs, () => isDone || isOver())
    if (!isDone && !isOver()) core.violate('liveness', `${what} takes over ${withinMs / MINUTE_MS} minutes`)
  }

  async function openUp(): Promise<void> {
    const must = async (operation: string, body: Json) => {
      const answer = await system.call(operation, body)
      if (!answer?.ok) throw new Error(`${operation}: ${answer?.reason ?? 'no answer'}`)
      return answer.body
    }
    for (let n = 0; n < stock.length; n += GOODS_IN_CALL) {
      const items = stock.slice(n, n + GOODS_IN_CALL).map((good) => ({ ...good, protectionTechnology: 'uhf_rfid' }))
      await must('registerProtectedItems', { storeId: shop.storeId, items })
    }
    const { policy } = await must('fetchProtectionPolicy', { storeId: shop.storeId })
    await must('updateProtectionPolicy', { storeId: shop.storeId, policy: { ...(policy as Json), ...DAY_RULES } })
    // Receipts are redeemed at the station, so that they are honoured while the line is down.
    await must('moveReceiptHome', { storeId: shop.storeId, home: station?.identity.agentId })
  }

  function planDay(): void {
    clock.after(outage.fromMs - clock.nowMs, () => {
      trace.note('day', 'the line to the internet is down')
      for (const { wire } of agents) wire.cut()
    })
    clock.after(outage.toMs - clock.nowMs, () => {
      trace.note('day', 'the line to the internet is back')
      for (const { wire } of agents) wire.restore()
    })
    clock.after(opensMs + plan.powerCut.fromMs - clock.nowMs, () => {
      crashes++
      detacher?.crash({ powerCut: true })
    })
    clock.after(opensMs + plan.powerCut.toMs - clock.nowMs, () => detacher?.start())
    for (const shopper of people) {
      clock.after(opensMs + shopper.comesMs - clock.nowMs, () => {
        inside++
        crowd
          .visit(shopper)
          .catch((error: unknown) =>
            core.violate('fault', `the visit of ${shopper.name} failed: ${(error as Error).stack}`),
          )
          .finally(() => void inside--)
      })
    }
  }

  let inside = 0
  try {
    await until('the cloud starts', cloud.start(), MINUTE_MS)
    for (const node of agents) {
      // They were off over night.
      node.machine.reboot()
      node.start()
    }
    await clock.run(clock.nowMs + MINUTE_MS / 2, isOver)
    await until('the morning', openUp(), BEFORE_MS / 2)
    planDay()
    await clock.run(opensMs, isOver)
    const closesMs = opensMs + plan.lengthMs
    for (let at = opensMs; at < closesMs && !isOver(); at += 15 * MINUTE_MS) {
      options.onProgress?.({ time: timeOf(at), tally })
      await clock.run(at + 15 * MINUTE_MS, isOver)
    }
    await clock.run(closesMs + HOUR_MS, () => isOver() || inside === 0)
    if (inside > 0 && !isOver()) core.violate('liveness', `an hour after closing ${inside} people are still there`)
    let lookAt = 0
    const settled = () => {
      if (isOver()) return true
      if (clock.nowMs < lookAt) return false
      lookAt = clock.nowMs + 5_000
      return isSettled(end) === undefined
    }
    await clock.run(clock.nowMs + SETTLED_WITHIN_MS, settled)
    const why = isOver() ? undefined : isSettled(end)
    if (why !== undefined) core.violate('liveness', `half an hour after closing: ${why}`)
    if (!isOver()) checkEnd(end)
    if (rules.stricter > STRICTER_SHARE * rules.compared)
      core.violate('rules', `${rules.stricter} of ${rules.compared} offline answers are stricter than the policy`)
    const unitsReleased = unitsReleasedBy(ledgers)
    if (!isOver()) checkReleases(unitsReleased, { core, cloud, tally })
    options.onProgress?.({ time: timeOf(clock.nowMs), tally })
    const journalRows = [...ledgers.values()].reduce((sum, { rows }) => sum + rows.length, 0)
    return {
      seed,
      shoppers: people.length,
      violations,
      hash: trace.hash,
      steps: clock.steps,
      tally,
      unitsReleased,
      journalRows,
      offline: { compared: rules.compared, stricter: rules.stricter },
      lines: trace.lines,
    }
  } finally {
    for (const node of [cloud, ...agents]) {
      node.machine.process?.kill()
      node.disk.close()
    }
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The store's own time of day. */
function timeOf(ms: number): string {
  const minutes = Math.floor((ms - MIDNIGHT_MS) / MINUTE_MS)
  return `${String(Math.floor(minutes / 60)).padStart(2, '0')}:${String(minutes % 60).padStart(2, '0')}`
}
