import { join } from 'node:path'
import type { KeyFiles } from '../../../cloud/authority/key-files.ts'
import { createCloud, type Cloud } from '../../../cloud/cloud.ts'
import type { CloudConfig } from '../../../cloud/foundation/config.ts'
import type { Log } from '../../../cloud/foundation/log.ts'
import type { OutgoingHttp } from '../../../cloud/outgoing/outgoing-http.ts'
import type { Database } from '../../../cloud/persistence/database.ts'
import { openConnection, openSqlite } from '../../../cloud/persistence/sqlite.ts'
import { noteRestore } from '../../../cloud/restore/note-restore.ts'
import { simBroker, type SimBroker } from '../virtual/broker.ts'
import type { Core } from '../virtual/core.ts'
import { newDisk, type Disk, type DiskWatcher } from '../virtual/disk.ts'
import type { HttpServer, SimAnswer, SimRequest } from '../virtual/http.ts'
import { machine, type Machine, type Process } from '../virtual/machine.ts'

/** The real cloud on a simulated machine: its own code, its own SQLite, no sockets. */
export interface CloudNode extends HttpServer {
  readonly machine: Machine
  readonly disk: Disk
  /** Of the process that runs now; undefined while it starts or is down. */
  readonly running: { cloud: Cloud; database: Database; broker: SimBroker; process: Process } | undefined
  start(): Promise<void>
  /** The process is gone between two instructions; a power cut also restarts the machine. */
  crash(how: { powerCut: boolean }): void
  /** Since it was put back last; 1: never. */
  readonly generation: number
  /** Ends, and goes on from this copy of its disk (`untag restore`). */
  restore(copy: string): void
  /** As after SIGTERM. */
  stop(): Promise<void>
}

export interface CloudNodeParts {
  core: Core
  keyFiles: KeyFiles
  outgoing: OutgoingHttp
  /** Files to begin with. */
  template?: string
  onCommit?: DiskWatcher['afterCommit']
  onDiskFault?(): void
  onAnswer?(request: SimRequest, answer: SimAnswer): void
  /** The process has ended, by itself or not: somebody must start it again. */
  onEnded?(): void
}

export const CLOUD_ORIGIN = 'http://cloud.sim'
export const CLOUD_DATABASE = 'cloud.db'

const CONFIG: CloudConfig = {
  baseUrl: `${CLOUD_ORIGIN}/api/v1`,
  mqttUrl: 'mqtt://cloud.sim:1883',
  rateLimit: 0,
  publishableRateLimit: 0,
  checkAnswers: true,
  allowPrivateTargets: true,
  trustedProxies: [],
}

/** A machine with the cloud's files on it; nothing runs yet. */
export function cloudNode({
  core,
  keyFiles,
  outgoing,
  template,
  onCommit,
  onDiskFault,
  onAnswer,
  onEnded,
}: CloudNodeParts): CloudNode {
  const { chance: world, trace } = core
  const chance = world.fork('cloud node')
  const computer = machine('cloud', core)
  let running: CloudNode['running']
  /** What is on the disk was put back, and does not say so yet. */
  let isPutBack = false
  let generation = 1

  const watcher: DiskWatcher = {
    beforeCommit: () => maybeDie('before a commit'),
    afterCommit(connection) {
      onCommit?.(connection)
      maybeDie('after a commit')
    },
    onFault: () => onDiskFault?.(),
    isAlive: () => computer.isUp,
  }
  const disk = newDisk(join(core.folder, 'cloud'), [CLOUD_DATABASE], watcher, template)

  function maybeDie(where: string): void {
    if (core.crashRate === 0 || !computer.isUp || !chance.happens(core.crashRate)) return
    trace.note('cloud', `dies ${where}`)
    crash({ powerCut: chance.happens(0.5) })
  }

  function crash({ powerCut }: { powerCut: boolean }): void {
    if (!computer.isUp) return
    trace.note('cloud', powerCut ? 'power cut' : 'killed')
    disk.leaveBehind({ powerCut })
    running = undefined
    computer.process?.kill()
    if (powerCut) computer.reboot()
    onEnded?.()
  }

  function logOf(process: Process): Log {
    const line = (level: string) => (fields: Record<string, unknown>, message: string) => {
      if (!process.isAlive) return
      trace.note('cloud', `${level}: ${message}`)
      // Faults of the disk are ours; anything else that is an error to the cloud is one to us.
      const { err } = fields as { err?: { name?: string; code?: string; stack?: string } }
      const isDisk =
        err?.name === 'StorageFailure' || err?.code === 'SQLITE_FULL' || err?.code?.startsWith('SQLITE_IOERR')
      if (level === 'error' && !isDisk)
        core.violate('fault', `cloud: ${message}: ${err?.stack ?? JSON.stringify(fields)}`)
    }
    return { info: () => undefined, warn: line('warn'), error: line('error') }
  }

  /** What a dead process sends reaches nobody. */
  function ofLiving(process: Process): OutgoingHttp {
    return { send: (asked, signal) => (process.isAlive ? outgoing.send(asked, signal) : new Promise(() => undefined)) }
  }

  function onThrow(agentId: string, by: Process, error: unknown): void {
    if (by.isAlive)
      core.violate('fault', `a message from the broker would end the process of ${agentId}: ${(error as Error).stack}`)
  }

  async function start(): Promise<void> {
    const process = computer.begin()
    const log = logOf(process)
    trace.note('cloud', 'starts')
    const onFailure = () => {
      if (process.isAlive) crash({ powerCut: false })
    }
    const database = await openSqlite(join(disk.folder, CLOUD_DATABASE), onFailure, (file, options) =>
      disk.watch(openConnection(file, options), CLOUD_DATABASE),
    )
    if (isPutBack) {
      // Who restores sets the clock first: the time of the restore counts the generations.
      computer.putRight()
      const restored = await database.write((db) => noteRestore(db, keyFiles, process.platform))
      if (!process.isAlive) return
      isPutBack = false
      ;({ generation } = restored)
      trace.note('cloud', `was put back, and goes on as generation ${generation}`)
    }
    if (!process.isAlive) return
    const images = { put: () => Promise.resolve(), get: () => Promise.resolve(undefined) }
    const cloud = await createCloud({
      config: CONFIG,
      platform: process.platform,
      log,
      database,
      keyFiles,
      images,
      outgoing: ofLiving(process),
    })
    if (!process.isAlive) return
    const broker = simBroker(cloud.messages.hooks, process, { ...core, onThrow })
    cloud.attachBroker(broker)
    running = { cloud, database, broker, process }
    trace.note('cloud', 'is up')
  }

  return {
    machine: computer,
    disk,
    get running() {
      return running
    },
    get process() {
      return running?.process
    },
    async answer(asked) {
      maybeDie('when asked')
      const { cloud, process } = running ?? {}
      if (!cloud || !process) throw new Error('the cloud is down')
      const { url, body, ...init } = asked
      const response = await cloud.app.request(url, { ...init, ...(body !== undefined && { body }) })
      const answer = { status: response.status, text: await response.text() }
      if (process.isAlive) {
        onAnswer?.(asked, answer)
        maybeDie('before it answers')
      }
      return answer
    },
    get generation() {
      return generation
    },
    start,
    crash,
    restore(copy) {
      crash({ powerCut: false })
      disk.restore(copy)
      isPutBack = true
    },
    async stop() {
      const current = running
      if (!current) return
      trace.note('cloud', 'stops')
      try {
        await current.cloud.stop()
        await current.broker.close()
        if (!current.process.isAlive) return
        await current.database.close()
      } catch (error) {
        // As `untag cloud` does: whoever cannot stop in order ends all the same.
        if (current.process.isAlive) crash({ powerCut: false })
        throw error
      }
      running = undefined
      disk.leaveBehind({ powerCut: false })
      current.process.kill()
      onEnded?.()
    },
  }
}
