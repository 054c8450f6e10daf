import { spawn } from 'node:child_process'
import type { ChildProcess, SpawnOptions } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createConnection } from 'node:net'
import { findTool, tryTool } from '../verification/tools.ts'
import type { NfcTag } from '../../simulators/devices/nfc-tags.ts'

/**
 * The real pcscd with the virtual two-slot reader of vsmartcard. Where possible it has its own network and mount
 * namespaces, so that other programs do not see it.
 */
export interface VpcdStation {
  /** pcscd's socket, as seen from outside. */
  readonly socket: string
  startPcscd(): Promise<void>
  /** Simulates a crash by kill -9. pcscd's files remain until its next start. */
  killPcscd(): Promise<void>
  /** Inserts a card into slot 0 or 1. The returned function removes it. */
  insert(slot: 0 | 1, tag: NfcTag): () => void
  close(): Promise<void>
}

/** To test another build of pcscd, set `UNTAG_TEST_PCSCD=/path/to/pcscd`. */
const PCSCD = process.env['UNTAG_TEST_PCSCD'] ?? '/usr/sbin/pcscd'
const DRIVER = '/usr/lib/pcsc/drivers/serial/libifdvpcd.so'
const PORT = 35_963
const isRoot = process.getuid?.() === 0
const UNSHARE = [...(isRoot ? [] : ['-r']), '-n', '-m']
const PREPARE = 'ip link set lo up && mkdir -p /run/pcscd && mount -t tmpfs tmpfs /run/pcscd'

function missingPackages(): string | null {
  if (process.platform !== 'linux') return null
  const wanted = { pcscd: PCSCD, 'vsmartcard-vpcd': DRIVER }
  const missing = Object.entries(wanted).flatMap(([name, file]) => (findTool(file) ? [] : [name]))
  if (findTool('ip') === undefined) missing.push('iproute2')
  return missing.length > 0 ? `install the packages ${missing.join(' ')}` : null
}

/** Names the packages that the station lacks, or null. */
export const NO_VPCD_PACKAGES = missingPackages()

/** False in many containers. A machine that is only for tests needs no namespaces. */
function place(): 'namespaces' | 'machine' | null {
  if (process.platform !== 'linux' || NO_VPCD_PACKAGES !== null) return null
  if (
    process.env['UNTAG_TEST_NAMESPACES'] !== 'false' &&
    tryTool('unshare', ...UNSHARE, 'sh', '-c', PREPARE).status === 0
  )
    return 'namespaces'
  return isRoot && process.env['UNTAG_TEST_TOOLS'] === 'required' && !existsSync('/run/pcscd/pcscd.comm')
    ? 'machine'
    : null
}

const PLACE = place()

/** Reason why this machine cannot run such a station, or null. */
export const NO_VPCD =
  PLACE !== null
    ? null
    : process.platform === 'linux'
      ? (NO_VPCD_PACKAGES ?? 'no permission for namespaces: run as root')
      : 'pcscd is tested on Linux only'

const ended = (child: ChildProcess): Promise<void> =>
  new Promise((resolve) =>
    child.exitCode !== null || child.signalCode !== null ? resolve() : child.once('exit', () => resolve()),
  )

function canConnect(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ path })
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}

async function untilIt(what: string, is: () => boolean | Promise<boolean>): Promise<void> {
  for (let i = 0; i < 200; i++) {
    if (await is()) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error(`${what}: not within 10 s`)
}

export async function vpcdStation(): Promise<VpcdStation> {
  const folder = mkdtempSync(join(tmpdir(), 'untag-vpcd-'))
  const config = join(folder, 'readers')
  mkdirSync(config)
  writeFileSync(
    join(config, 'vpcd'),
    `FRIENDLYNAME "Virtual PCD"\nDEVICENAME /dev/null:0x8C7B\nLIBPATH ${DRIVER}\nCHANNELID 0x8C7B\n`,
  )
  const held = PLACE === 'namespaces' ? `${PREPARE} && ` : 'mkdir -p /run/pcscd && '
  const [keeper = '', ...args] = [
    ...(PLACE === 'namespaces' ? ['unshare', ...UNSHARE] : []),
    'sh',
    '-c',
    `${held}touch /run/pcscd/here && exec cat`,
  ]
  const holder = spawn(keeper, args, { stdio: ['pipe', 'ignore', 'inherit'] })
  const run = `/proc/${holder.pid}/root/run/pcscd`
  const enter =
    PLACE === 'namespaces'
      ? ['nsenter', '-t', String(holder.pid), '-n', '-m', ...(isRoot ? [] : ['-U', '--preserve-credentials'])]
      : ['env']
  const within = (command: readonly string[], options: SpawnOptions): ChildProcess =>
    spawn(enter[0] ?? '', [...enter.slice(1), ...command], options)
  const socket = join(run, 'pcscd.comm')
  const cards = new Set<ChildProcess>()
  let pcscd: ChildProcess | null = null
  await untilIt('namespaces', () => existsSync(join(run, 'here')))

  function insert(slot: 0 | 1, tag: NfcTag): () => void {
    // A slot of a new pcscd may refuse the first connections.
    const connect = `until { exec 3<>/dev/tcp/127.0.0.1/${PORT + slot}; } 2>/dev/null; do sleep 0.05; done`
    const pipe = `${connect}; cat <&3 & cat >&3; kill %1`
    const card = within(['bash', '-c', pipe], { stdio: ['pipe', 'pipe', 'ignore'], detached: true })
    cards.add(card)
    card.stdin?.on('error', () => {})
    let held: Buffer = Buffer.alloc(0)
    const say = (bytes: Uint8Array) =>
      void card.stdin?.write(Uint8Array.of(bytes.length >> 8, bytes.length & 0xff, ...bytes))
    card.stdout?.on('data', (chunk: Buffer) => {
      held = Buffer.concat([held, chunk])
      for (
        ;
        held.length >= 2 && held.length >= 2 + held.readUInt16BE(0);
        held = held.subarray(2 + held.readUInt16BE(0))
      ) {
        const message = held.subarray(2, 2 + held.readUInt16BE(0))
        // Commands of one byte: power off 0, power on 1, reset 2 and ATR 4. Only ATR has an answer.
        if (message.length > 1) say(tag.answer(message) ?? Uint8Array.of(0x64, 0x01))
        else if (message[0] === 4) say(tag.atr)
        else if (message[0] === 2 || message[0] === 0) tag.reset?.()
      }
    })
    return () => {
      cards.delete(card)
      if (card.pid !== undefined && card.exitCode === null) process.kill(-card.pid, 'SIGKILL')
    }
  }

  async function killPcscd(): Promise<void> {
    const dying = pcscd
    pcscd = null
    if (!dying) return
    dying.kill('SIGKILL')
    await ended(dying)
  }

  return {
    socket,
    async startPcscd() {
      for (const name of ['pcscd.comm', 'pcscd.pid']) rmSync(join(run, name), { force: true })
      pcscd = within([PCSCD, '-f', '-C', '-c', config], { stdio: 'ignore' })
      await untilIt('pcscd', () => canConnect(socket))
    },
    killPcscd,
    insert,
    async close() {
      for (const card of cards) if (card.pid !== undefined) process.kill(-card.pid, 'SIGKILL')
      await killPcscd()
      for (const name of ['here', 'pcscd.comm', 'pcscd.pid']) rmSync(join(run, name), { force: true })
      holder.stdin?.end()
      await ended(holder)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
