import { verifyAudit } from '../../cloud/platform/accounts/audit-chain.ts'
import { counted } from '../../host/output.ts'
import type { Values } from '../../host/options.ts'
import type { VERIFY_AUDIT_OPTIONS } from '../../host/settings/cloud-data.ts'
import { withKnownDatabase } from '../../host/known-database.ts'

/** Verifies the hash chains of the audit log. Throws an error that names the first changed entry of each chain. */
export async function runVerifyAudit(settings: Values<typeof VERIFY_AUDIT_OPTIONS>): Promise<void> {
  const { chains, unsealed } = await withKnownDatabase(settings, (database) => verifyAudit(database.reads))
  const broken = chains.flatMap(({ tenant, broken: fault }) =>
    fault
      ? [`${tenant}: entry ${fault.number}${fault.entryId === undefined ? '' : ` (${fault.entryId})`}: ${fault.why}`]
      : [],
  )
  if (settings.json) process.stdout.write(`${JSON.stringify({ ok: broken.length === 0, chains, unsealed })}\n`)
  if (broken.length > 0) throw new Error(`the audit log was changed:\n${broken.join('\n')}`)
  if (settings.json) return
  const lines = chains.map(
    ({ tenant, entries, pruned, hash }) =>
      `${tenant}  ${counted(entries, 'entry', 'entries')}${pruned === 0 ? '' : `, the first ${pruned} deleted by retention`}  ${hash}`,
  )
  process.stdout.write(
    [
      ...lines,
      `intact: ${counted(chains.length, 'chain')}; ${counted(unsealed, 'entry is', 'entries are')} not sealed yet`,
      '',
    ].join('\n'),
  )
}
