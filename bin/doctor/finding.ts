import { FINDING_CODES } from '../../device-drivers/kit/device.ts'
import { REGISTRATION_FAULTS } from '../../edge-agent/health/registration.ts'

/**
 * Causes of faults. docs/guides/troubleshooting.md has a row for each cause, with the texts of the agent's pages and of
 * its log.
 */
export const CAUSES = [
  'agent_not_running',
  'agent_silent',
  'credential_refused',
  'cloud_unreachable',
  'certificate',
  'broker_unreachable',
  'clock_wrong',
  'clock_untrusted',
  'disk_low',
  'ledger_unavailable',
  'revoked',
  'forked',
  'put_back',
  'queue_grows',
  'no_policy',
  'policy_stale',
  'agent_too_old',
  'backup_old',
  'emergency',
  'device_absent',
  ...REGISTRATION_FAULTS,
  ...FINDING_CODES,
] as const
export type Cause = (typeof CAUSES)[number]

/** Result of one check. */
export interface Finding {
  what: string
  state: 'ok' | 'note' | 'wrong'
  /** The result; for a fault, also the next step. */
  detail: string
  /** Set for faults that troubleshooting.md explains. */
  cause?: Cause
}

export function fault(what: string, cause: Cause, detail: string): Finding {
  return { what, state: 'wrong', detail, cause }
}

/** Width of the mark and of what was checked. */
const COLUMN = 21

/**
 * Lines for a person: marks, results, and where the faults are explained. Further lines of a result are indented, so that
 * no text of others in it looks like a result of its own.
 */
export function findingLines(findings: readonly Finding[]): string[] {
  const marks = { ok: '✓', note: '·', wrong: '✗' }
  const causes = [...new Set(findings.flatMap(({ cause }) => cause ?? []))]
  return [
    ...findings.flatMap(({ what, state, detail }) => {
      const [first = '', ...more] = detail.split('\n')
      return [
        `${marks[state]} ${what.padEnd(COLUMN - 3)} ${first}`,
        ...more.map((line) => `${' '.repeat(COLUMN)}${line}`),
      ]
    }),
    ...(causes.length === 0 ? [] : ['', `docs/guides/troubleshooting.md explains: ${causes.join(', ')}`]),
  ]
}
