import { createServer } from 'node:net'
import { z } from 'zod'
import { Readiness } from '../edge-agent/http/response-schemas.ts'
import { fetchFromThisMachine } from './tls/private-ca.ts'
import { PROGRAM_HEADER, readProgramHeader, type RunningProgram } from '../policy/program-header.ts'

/** Maximum wait, ms. An untag program responds at once; other servers may never respond. */
const ANSWER_WITHIN_MS = 1_000

/** Default ports that `untag doctor` checks. */
export const DEFAULT_PORTS = { cloud: 8080, agent: 8090, mqtt: 1883 } as const
export type Ports = Readonly<Record<keyof typeof DEFAULT_PORTS, number>>

export interface PortFinding {
  port: number
  state: 'ok' | 'note'
  detail: string
}

/** Checks which ports of this machine are free, and recognises untag programs on the ports that are in use. */
export async function checkPorts(ports: Ports = DEFAULT_PORTS): Promise<PortFinding[]> {
  const [cloud, agent] = await Promise.all([programAt(ports.cloud), programAt(ports.agent)])
  const broker = cloud?.mqttPort === ports.mqtt ? `the broker of the untag cloud on port ${ports.cloud}` : undefined
  return Promise.all([
    finding(ports.cloud, '--port', named(cloud)),
    finding(ports.mqtt, '--mqtt-port', broker),
    finding(ports.agent, '--edge-port (start) or --port (edge)', named(agent)),
  ])
}

function named(found: RunningProgram | undefined): string | undefined {
  return found && `an untag ${found.program}`
}

/** The finding for a port. `user` is the name of the untag program that uses the port. */
async function finding(port: number, flag: string, user: string | undefined): Promise<PortFinding> {
  if (user !== undefined)
    return { port, state: 'ok', detail: `${user} runs here; choose another port with ${flag} to start one more` }
  if (await canListen(port)) return { port, state: 'ok', detail: 'free' }
  return { port, state: 'note', detail: `taken by a program that is not recognised; choose another with ${flag}` }
}

/** Devices of an agent of another release may have another form; its emergency still counts. */
const AgentReadiness = z.object({ emergency: z.boolean(), devices: Readiness.shape.devices.catch([]) })

/** What an agent on this port reports about its emergency inputs and devices. Undefined if no agent responds. */
export async function agentReadiness(
  port: number = DEFAULT_PORTS.agent,
): Promise<z.infer<typeof AgentReadiness> | undefined> {
  if ((await programAt(port))?.program !== 'agent') return undefined
  try {
    return AgentReadiness.parse(await (await answerOf(port, '/readyz')).json())
  } catch {
    return undefined
  }
}

async function programAt(port: number): Promise<RunningProgram | undefined> {
  try {
    const { headers, body } = await answerOf(port, '/healthz')
    await body?.cancel()
    return readProgramHeader(headers.get(PROGRAM_HEADER))
  } catch {
    return undefined
  }
}

/** Sends a request to this port over HTTP and, if that fails, over HTTPS. */
async function answerOf(port: number, path: string): Promise<Response> {
  const limit = () => ({ redirect: 'manual', signal: AbortSignal.timeout(ANSWER_WITHIN_MS) }) as const
  const address = `127.0.0.1:${port}${path}`
  return fetch(`http://${address}`, limit()).catch(() => fetchFromThisMachine()(`https://${address}`, limit()))
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
