import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { AgentConfig } from '../../../edge-agent/config.ts'
import { openLedgerFile } from '../../../edge-agent/ledger/file/database.ts'
import { keepFirstDocuments } from '../../../edge-agent/enrolment/enrol.ts'
import { takeOver } from '../../../edge-agent/enrolment/take-over.ts'
import { startAgent, type Agent } from '../../../edge-agent/runtime.ts'
import type { Log } from '../../../edge-agent/log.ts'
import type { Identity } from '../../../edge-agent/identity/identity.ts'
import type { Actuators } from './actuators.ts'
import { serveAgent, type AgentServer } from './agent-server.ts'
import type { CloudNode } from './cloud-node.ts'
import type { Core } from '../virtual/core.ts'
import { newDisk, type Disk, type DiskWatcher } from '../virtual/disk.ts'
import { request } from '../virtual/http.ts'
import { lanHost, type Lan } from '../virtual/lan.ts'
import { machine, type Machine, type Process } from '../virtual/machine.ts'
import type { Wire } from '../virtual/wire.ts'

/** A real agent on a simulated machine, with its ledger on a simulated disk and a wire to the cloud. */
export interface AgentNode {
  readonly name: string
  readonly identity: Identity
  readonly machine: Machine
  readonly disk: Disk
  readonly wire: Wire
  readonly agent: Agent | undefined
  start(): void
  crash(how: { powerCut: boolean }): void
  stop(): Promise<void>
  /** Ends, and goes on from this old copy of its disk. Returns whether it ran until then: its watermark is up to date. */
  putBack(copy: string): boolean
  /** Ends, and goes on under another identity (`untag edge enrol --replace`). */
  replace(next: Identity, documents: readonly string[]): void
  /** It was in touch with the cloud since its machine booted, for so long that what it writes now was thought of since. */
  readonly wasInTouch: boolean
  /** The process has an effect outside: it may die there. */
  maybeDie(where: string, weight?: number): void
}

/** What is written was dated a moment before: by a real-time clock, where the signed time came with the same answer. */
const WRITTEN_WITHIN_MS = 5_000

export interface AgentNodeParts {
  core: Core
  name: string
  identity: Identity
  /** With what it starts each time. */
  config(): AgentConfig
  template: string
  cloud: CloudNode
  wire: Wire
  lan: Lan
  actuators: Pick<Actuators, 'supervisor'>
  onCommit?: DiskWatcher['afterCommit']
  onStart?(node: AgentNode): void
  onEnded?(): void
  /** The ledger goes on under another identity. */
  onReplaced?(): void
}

export const LEDGER = 'ledger.db'
/** The replica of the items: it may be lost, and is fetched again. */
export const ITEMS = 'items.db'

/** A machine with an enrolled agent's files on it; nothing runs yet. */
export function agentNode(parts: AgentNodeParts): AgentNode {
  const { core, name, identity, config, cloud, wire, lan } = parts
  const { trace, scheduler } = core
  const chance = core.chance.fork(`agent node ${name}`)
  const computer = machine(name, core)
  /** Small files of the data folder that are written whole, synced and renamed. */
  const secrets = new Map<string, string>()
  /** The runtime folder: empty again when the machine is booted. */
  const runtime = new Map<string, string>()
  let agent: Agent | undefined
  let isRestored = false
  let served: AgentServer | undefined
  let inTouchSinceMs: number | undefined = Number.NEGATIVE_INFINITY
  /** Was answered the time; should it end before that is written down, the next one knows nothing of it. */
  let toldTime: Process | undefined

  const watcher: DiskWatcher = {
    beforeCommit: () => maybeDie('before a commit'),
    afterCommit(connection) {
      // It may have refused the answer: the key that signed it may be revoked.
      if (toldTime?.isAlive && agent?.clock.now().trust === 'signed') inTouchSinceMs ??= core.scheduler.nowMs
      parts.onCommit?.(connection)
      maybeDie('after a commit')
    },
    isAlive: () => computer.isUp,
  }
  let kept = identity
  const disk = newDisk(join(core.folder, name), [LEDGER, ITEMS], watcher, parts.template)

  function maybeDie(where: string, weight = 1): void {
    if (core.crashRate === 0 || !computer.isUp || !chance.happens(core.crashRate * weight)) return
    trace.note(name, `dies ${where}`)
    crash({ powerCut: chance.happens(0.5) })
  }

  function crash({ powerCut }: { powerCut: boolean }): void {
    if (!computer.isUp) return
    trace.note(name, powerCut ? 'power cut' : 'killed')
    disk.leaveBehind({ powerCut })
    agent = undefined
    served = undefined
    computer.process?.kill()
    if (powerCut) {
      computer.reboot()
      runtime.clear()
      inTouchSinceMs = undefined
    }
    parts.onEnded?.()
  }

  function logOf(process: Process): Log {
    const line = (level: string) => (fields: Record<string, unknown>, message: string) => {
      if (!process.isAlive) return
      trace.note(name, `${level}: ${message} ${typeof fields['what'] === 'string' ? fields['what'] : ''}`)
      const { err } = fields as { err?: { name?: string; stack?: string } }
      if (level === 'error' && !err?.name?.startsWith('Ledger'))
        core.violate('fault', `${name}: ${message}: ${err?.stack ?? JSON.stringify(fields)}`)
    }
    return { info: () => undefined, warn: line('warn'), error: line('error') }
  }

  lan.join(name, {
    get process() {
      return served && computer.process
    },
    async answer(asked) {
      maybeDie('when another agent asks')
      const { process } = computer
      if (!served || !process) throw new Error('connection refused')
      const answer = await served.answer(asked)
      if (process.isAlive) {
        trace.note(name, `answers another agent: ${answer.status}`)
        maybeDie('before it answers another agent')
      }
      return answer
    },
  })

  const node: AgentNode = {
    name,
    get identity() {
      return kept
    },
    machine: computer,
    disk,
    wire,
    get agent() {
      return agent
    },
    maybeDie,
    get wasInTouch() {
      return inTouchSinceMs !== undefined && core.scheduler.nowMs - inTouchSinceMs > WRITTEN_WITHIN_MS
    },
    start() {
      const process = computer.begin()
      trace.note(name, 'starts')
      parts.onStart?.(node)
      const started = startAgent({
        platform: process.platform,
        dataDir: disk.folder,
        identity: kept,
        // A small file that is written whole, synced and renamed: it is there or not.
        keepIdentity: (changed) => void (kept = changed),
        secretFiles: {
          read: (file) => secrets.get(file),
          write: (file, text) => void (process.isAlive && secrets.set(file, text)),
        },
        config: config(),
        async fetch(url, init) {
          maybeDie('before it asks')
          const neighbour = lan.at(url)
          const way = neighbour ? { wire: lan.wire, server: neighbour } : { wire, server: cloud }
          const answer = await request({ url, ...init }, { ...way, scheduler, signal: init.signal, by: process })
          maybeDie('when it is answered')
          if (url.includes('/time?') && answer.status === 200) toldTime = process
          return { status: answer.status, text: () => Promise.resolve(answer.text) }
        },
        async openLine(options) {
          if (!cloud.running) throw new Error('connection refused')
          return cloud.running.broker.open(options, process, wire)
        },
        address: `http://${lanHost(name)}`,
        log: logOf(process),
        supervise: parts.actuators.supervisor(name, process),
        runtimeFiles: {
          read: (file) => runtime.get(file),
          write: (file, text) => void (process.isAlive && runtime.set(file, text)),
        },
        openLedgerFile: (file) => disk.watch(openLedgerFile(file), LEDGER),
        onFatal: () => {
          if (process.isAlive) crash({ powerCut: false })
        },
      })
      // It may have died while it started.
      if (!process.isAlive) return
      agent = started
      if (started.ledger.isBehindWatermark && !isRestored)
        core.violate('fault', `${name} takes its ledger for restored, which it was not`)
      served = serveAgent(name, started, logOf(process))
    },
    crash,
    putBack(copy) {
      const ran = computer.isUp
      crash({ powerCut: false })
      disk.restore(copy)
      // The copy was made before the newest key: worse than that is only none.
      secrets.clear()
      isRestored = true
      inTouchSinceMs = undefined
      return ran
    },
    replace(next, documents) {
      crash({ powerCut: false })
      const file = join(disk.folder, LEDGER)
      const { process } = computer
      if (!process) throw new Error(`${name} has never run`)
      takeOver(file, kept, next, documents)
      for (const suffix of ['', '-wal', '-shm']) rmSync(join(disk.folder, ITEMS + suffix), { force: true })
      keepFirstDocuments(file, next, documents, process.platform)
      kept = next
      inTouchSinceMs = undefined
      parts.onReplaced?.()
    },
    async stop() {
      const current = agent
      const { process } = computer
      if (!current || !process?.isAlive) return
      trace.note(name, 'stops')
      try {
        await served?.close()
        await current.stop()
      } catch (error) {
        // As `untag edge` does: whoever cannot stop in order ends all the same.
        if (process.isAlive) crash({ powerCut: false })
        throw error
      }
      if (!process.isAlive) return
      agent = undefined
      served = undefined
      disk.leaveBehind({ powerCut: false })
      process.kill()
      parts.onEnded?.()
    },
  }
  return node
}
