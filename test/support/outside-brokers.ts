import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { unusedPort } from '../../verification/kills/tcp-wire.ts'
import { temporaryFolder } from './databases.ts'

/** A broker of another project that runs as its own process. */
export interface BrokerProcess {
  readonly port: number
  readonly folder: string
  /** Starts the broker with its files as they are now. */
  start(): Promise<void>
  /** Kills the broker at once. */
  kill(): Promise<void>
}

/** True if the program is installed. */
export function hasProgram(program: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${program}`], { env: environment() }).status === 0
}

/** Debian installs servers where users' paths may not look. */
function environment(): NodeJS.ProcessEnv {
  return { ...process.env, PATH: `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin` }
}

/** Resolves when the port accepts connections. */
async function accepts(port: number): Promise<void> {
  for (;;) {
    const socket = connect(port, '127.0.0.1')
    const isOpen = await new Promise((resolve) => {
      socket.once('connect', () => resolve(true))
      socket.once('error', () => resolve(false))
    })
    socket.destroy()
    if (isOpen) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** A broker process with these arguments. `files`: names and texts of files in its folder. */
export async function brokerProcess(
  program: string,
  parts: (folder: string, port: number) => { args: string[]; files: Record<string, string>; env?: NodeJS.ProcessEnv },
): Promise<BrokerProcess> {
  const folder = temporaryFolder('broker')
  const port = await unusedPort()
  const { args, files, env } = parts(folder, port)
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  let child: ChildProcess | undefined
  return {
    port,
    folder,
    async start() {
      child = spawn(program, args, { cwd: folder, stdio: 'ignore', env: { ...environment(), ...env } })
      await accepts(port)
    },
    async kill() {
      if (!child || child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** Mosquitto with these further lines of its configuration. */
export function mosquitto(lines: (folder: string) => readonly string[]): Promise<BrokerProcess> {
  return brokerProcess('mosquitto', (folder, port) => ({
    args: ['-c', join(folder, 'mosquitto.conf')],
    files: {
      'mosquitto.conf': ['user root', `listener ${port} 127.0.0.1`, ...lines(folder), ''].join('\n'),
    },
  }))
}
