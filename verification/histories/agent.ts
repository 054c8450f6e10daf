import { realPlatform } from '../../bin/platform.ts'
import { enrol, type Enrolled } from '../../edge-agent/enrolment/enrol.ts'

/** Enrols a new agent at the process with this address. */
export function enrolAt(address: string, code: string): Promise<Enrolled> {
  return enrol({
    cloud: address,
    code,
    platform: realPlatform(),
    async fetch(url, { method, headers, body, signal }) {
      const answer = await fetch(url, { method, headers, signal, ...(body !== undefined && { body }) })
      return { status: answer.status, text: () => answer.text() }
    },
  })
}
