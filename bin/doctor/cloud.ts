import { connect } from 'node:tls'
import { connectionFault } from '../api-client.ts'
import { errorText } from '../../host/output.ts'
import { certificateFault, withPublicCas, type SendRequest } from '../../host/tls/private-ca.ts'
import { fault, type Finding } from './finding.ts'

const ANSWER_WITHIN_MS = 5_000
/** Maximum difference between the clocks of this machine and of the cloud, ms. The agent signs its messages with times. */
const CLOCK_LIMIT_MS = 30_000
/** A certificate that ends within this time is not renewed as it should be, ms. */
const CERTIFICATE_WARNING_MS = 14 * 86_400_000
const DAY_MS = 86_400_000

/** How an enrolled agent gets another address of its cloud. It keeps its ledger. */
const ADDRESS_OPTION = '--cloud of untag edge enrol --replace'

interface CloudCheck {
  /** Address of the cloud of the enrolled agent. */
  readonly cloud: string
  /** True if the agent runs, and so decides without the cloud. */
  readonly isAgentRunning: boolean
  readonly send: SendRequest
  nowMs(): number
  /** End of the certificate of this server, ms; undefined if it cannot be read. */
  certificateEnd(url: URL): Promise<number | undefined>
}

/** Checks if the cloud answers, if this machine trusts its certificate, and if both clocks agree. */
export async function checkCloud({
  cloud,
  isAgentRunning,
  send,
  nowMs,
  certificateEnd,
}: CloudCheck): Promise<Finding[]> {
  const url = new URL(cloud)
  const { origin } = url
  try {
    const sentMs = nowMs()
    const answer = await send(`${origin}/healthz`, {
      redirect: 'manual',
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
    })
    const middleMs = (sentMs + nowMs()) / 2
    await answer.body?.cancel()
    if (answer.status !== 200)
      return [
        fault(
          'cloud',
          'cloud_unreachable',
          `${origin} answers /healthz with ${answer.status}: check the proxy of the cloud`,
        ),
      ]
    const endMs = url.protocol === 'https:' ? await certificateEnd(url) : undefined
    return [
      { what: 'cloud', state: 'ok', detail: `${origin} answers` },
      ...(endMs === undefined ? [] : [certificateFinding(endMs, nowMs())]),
      ...clockFindings(middleMs, answer.headers.get('date')),
    ]
  } catch (error) {
    const untrusted = certificateFault(error)
    return [
      untrusted === undefined
        ? fault(
            'cloud',
            'cloud_unreachable',
            `${origin} cannot be reached (${connectionFault(error, cloud, ADDRESS_OPTION) ?? errorText(error)}): check the network, the firewall and whether the cloud runs${isAgentRunning ? '. The agent goes on deciding offline, and sends its events later' : ''}`,
          )
        : fault('cloud', 'certificate', `${origin}: ${untrusted}`),
    ]
  }
}

function certificateFinding(endMs: number, nowMs: number): Finding {
  const days = Math.floor((endMs - nowMs) / DAY_MS)
  const detail = `the certificate of the cloud ends in ${days} days`
  return endMs - nowMs < CERTIFICATE_WARNING_MS
    ? fault('certificate', 'certificate', `${detail}: renew it`)
    : { what: 'certificate', state: 'ok', detail }
}

/** Compares the clock of this machine with the time of the cloud's answer. */
function clockFindings(nowMs: number, date: string | null): Finding[] {
  const cloudMs = date === null ? NaN : Date.parse(date)
  if (Number.isNaN(cloudMs)) return []
  const aheadMs = nowMs - cloudMs
  const shown = new Date(nowMs).toISOString()
  if (Math.abs(aheadMs) <= CLOCK_LIMIT_MS)
    return [{ what: 'clock', state: 'ok', detail: `${shown}, like the clock of the cloud` }]
  const how = `${duration(Math.abs(aheadMs))} ${aheadMs > 0 ? 'ahead of' : 'behind'} the clock of the cloud`
  return [
    fault(
      'clock',
      'clock_wrong',
      `${shown}, ${how}: set the time, and install a time service (systemd-timesyncd, chrony)`,
    ),
  ]
}

function duration(ms: number): string {
  if (ms >= 2 * DAY_MS) return `${Math.round(ms / DAY_MS)} days`
  if (ms >= 2 * 3_600_000) return `${Math.round(ms / 3_600_000)} hours`
  if (ms >= 120_000) return `${Math.round(ms / 60_000)} minutes`
  return `${Math.round(ms / 1_000)} seconds`
}

/** Reads the end of a server's certificate. The check of trust is apart, so the server only shows its certificate. */
export function certificateEnd(url: URL, ca?: string): Promise<number | undefined> {
  return new Promise((resolve) => {
    const socket = connect({
      host: url.hostname,
      port: Number(url.port || 443),
      servername: /^[\d.:[\]]+$/.test(url.hostname) ? '' : url.hostname,
      ...(ca !== undefined && { ca: withPublicCas(ca) }),
      rejectUnauthorized: false,
      timeout: ANSWER_WITHIN_MS,
    })
    const end = (endMs: number | undefined) => {
      socket.destroy()
      resolve(endMs)
    }
    socket.once('secureConnect', () => {
      const endMs = Date.parse(socket.getPeerCertificate().valid_to)
      end(Number.isNaN(endMs) ? undefined : endMs)
    })
    socket.once('timeout', () => end(undefined))
    socket.once('error', () => end(undefined))
  })
}
