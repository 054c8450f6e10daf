import { printLine, printReady } from '../../host/output.ts'
import { WrongUsage, type Values } from '../../host/options.ts'
import { realPlatform } from '../../host/platform.ts'
import type { SIMULATE_TILL_OPTIONS } from '../../host/settings/tools.ts'
import { stopOnSignals } from '../../host/shutdown.ts'
import { deadline, type Platform } from '../../policy/platform.ts'
import { SimulatedTill } from '../../simulators/services/till.ts'
import { runStdinCommands } from './edge-access.ts'

/** Time in which an agent answers a till, ms. */
const ANSWER_WITHIN_MS = 5_000
const EPC = /^(?:[0-9A-F]{4}){1,31}$/

/** Plays a till against an agent that runs. `credential`: what `untag edge pair --may sales,returns` printed. */
export function tillAtAgent(
  { agent, credential, tillId }: { agent: string; credential: string; tillId: string },
  { clock, timers }: Platform,
): SimulatedTill {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${credential}` }
  return new SimulatedTill({
    tillId,
    // Numbers go on after a restart.
    firstNumber: clock.wall(),
    nowMs: () => clock.wall(),
    async send(path, body) {
      const limit = deadline(timers, ANSWER_WITHIN_MS)
      const url = new URL(`/v1/${path}`, agent)
      try {
        const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body), signal: limit.signal })
        return { status: answer.status, body: (await answer.json()) as object }
      } finally {
        limit.done()
      }
    },
  })
}

/** Reads what the cashier does from stdin, and prints what the till shows. */
export async function runSimulateTill({
  agent,
  credential,
  tillId,
  price,
}: Values<typeof SIMULATE_TILL_OPTIONS>): Promise<void> {
  if (credential === undefined)
    throw new WrongUsage([
      '--credential is needed: pair the till with untag edge pair --name till-1 --may sales,returns',
    ])
  const till = tillAtAgent({ agent, credential, tillId }, realPlatform())
  // One after another, as a cashier works.
  let work = Promise.resolve()
  const run = (task: () => Promise<readonly string[]>) => {
    work = work.then(task).then(
      (lines) => lines.forEach((line) => printLine(line)),
      (error: unknown) => printLine((error as Error).message),
    )
  }
  const withTags = (epcs: readonly string[], task: (epcs: readonly string[]) => Promise<readonly string[]>) => {
    const tags = epcs.map((epc) => epc.toUpperCase())
    if (tags.every((epc) => EPC.test(epc))) run(() => task(tags))
    else printLine('an EPC is hex in groups of 4 digits')
  }
  const sell = (...epcs: string[]) =>
    withTags(epcs, (tags) =>
      till.sell((tags.length > 0 ? tags : [undefined]).map((epc) => ({ name: 'Artikel', priceCent: price, epc }))),
    )
  const takeBack = (...epcs: string[]) => withTags(epcs, (tags) => till.takeBack(tags))
  const voidLast = () => run(() => till.voidLast())
  const cut = () => run(() => till.cut(true))
  const restore = () => run(() => till.cut(false))
  const stop = runStdinCommands({
    sale: sell,
    s: sell,
    return: takeBack,
    r: takeBack,
    void: voidLast,
    v: voidLast,
    cut,
    c: cut,
    restore,
    o: restore,
  })
  stopOnSignals(async () => {
    stop()
    await work
  })
  printReady({ agent, tillId, commands: 'sale [EPC…], return EPC…, void, cut, restore' })
}
