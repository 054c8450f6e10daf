import { errorText } from './error-text.ts'
import { connectionFault } from './connection-fault.ts'
import { certificateFault, fetchTrusting } from './tls/private-ca.ts'

const ANSWER_WITHIN_MS = 5_000

/** Result of a check of the way to the cloud. */
export interface CloudFinding {
  state: 'ok' | 'note' | 'wrong'
  detail: string
}

/** Checks if the cloud answers, and if this machine trusts its certificate. `ca`: certificates of a private CA. */
export async function checkCloud(cloud: string, ca: string | undefined): Promise<CloudFinding> {
  const send = ca === undefined ? fetch : fetchTrusting(ca)
  const { origin } = new URL(cloud)
  try {
    const answer = await send(`${origin}/healthz`, {
      redirect: 'manual',
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
    })
    await answer.body?.cancel()
    return answer.status === 200
      ? { state: 'ok', detail: `${origin} answers` }
      : { state: 'wrong', detail: `${origin} answers /healthz with ${answer.status}: check the proxy of the cloud` }
  } catch (error) {
    const certificate = certificateFault(error)
    if (certificate !== undefined) return { state: 'wrong', detail: `${origin}: ${certificate}` }
    const fault = connectionFault(error, cloud, 'the address of the cloud') ?? errorText(error)
    return { state: 'note', detail: `${origin} cannot be reached: ${fault}` }
  }
}
