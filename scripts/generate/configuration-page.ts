import { listOptions, type Options } from '../../host/options.ts'
import * as cloud from '../../host/settings/cloud.ts'
import * as data from '../../host/settings/cloud-data.ts'
import * as edge from '../../host/settings/edge.ts'
import * as tools from '../../host/settings/tools.ts'
import { PSP_NAMES } from '../../simulators/services/psp-books.ts'
import { replaceMarked } from './contract-page.ts'

/** The options of each command, in the order of the page. */
export const COMMANDS: Record<string, Options> = {
  'untag start': cloud.START_OPTIONS,
  'untag cloud': cloud.CLOUD_OPTIONS,
  'untag broker sync': data.BROKER_SYNC_OPTIONS,
  'untag keys create': data.KEYS_CREATE_OPTIONS,
  'untag keys check': data.KEYS_CHECK_OPTIONS,
  'untag keys list': data.KEYS_LIST_OPTIONS,
  'untag keys roll': data.KEYS_ROLL_OPTIONS,
  'untag keys rotate': data.KEYS_ROTATE_OPTIONS,
  'untag keys revoke': data.KEYS_REVOKE_OPTIONS,
  'untag users invite': data.USERS_INVITE_OPTIONS,
  'untag users list': data.USERS_LIST_OPTIONS,
  'untag users remove': data.USERS_REMOVE_OPTIONS,
  'untag admins invite': data.ADMINS_INVITE_OPTIONS,
  'untag admins list': data.ADMINS_LIST_OPTIONS,
  'untag admins remove': data.ADMINS_REMOVE_OPTIONS,
  'untag verify-audit': data.VERIFY_AUDIT_OPTIONS,
  'untag reseal': data.RESEAL_OPTIONS,
  'untag migrate': data.MIGRATE_OPTIONS,
  'untag database copy': data.DATABASE_COPY_OPTIONS,
  'untag backup': data.BACKUP_OPTIONS,
  'untag restore': data.RESTORE_OPTIONS,
  'untag edge': edge.EDGE_OPTIONS,
  'untag edge enrol': edge.EDGE_ENROL_OPTIONS,
  'untag edge credential': edge.EDGE_CREDENTIAL_OPTIONS,
  'untag edge link': edge.EDGE_LINK_OPTIONS,
  'untag edge pair': edge.EDGE_PAIR_OPTIONS,
  'untag edge pairings': edge.EDGE_PAIRINGS_OPTIONS,
  'untag edge rotate-key': edge.EDGE_ROTATE_KEY_OPTIONS,
  'untag edge walk-test': edge.EDGE_WALK_TEST_OPTIONS,
  'untag api': tools.API_OPTIONS,
  'untag listen': tools.LISTEN_OPTIONS,
  'untag trigger': tools.TRIGGER_OPTIONS,
  'untag policy explain': tools.POLICY_EXPLAIN_OPTIONS,
  'untag simulate': tools.SIMULATE_OPTIONS,
  'untag simulate nfc': tools.SIMULATE_NFC_OPTIONS,
  'untag simulate pos, erp': tools.SIMULATE_VENDOR_OPTIONS,
  'untag simulate till': tools.SIMULATE_TILL_OPTIONS,
  'untag simulate psp': tools.simulatePspOptions(PSP_NAMES),
  'untag completion': tools.COMPLETION_OPTIONS,
  'untag doctor': edge.DOCTOR_OPTIONS,
  'untag service install cloud': edge.SERVICE_CLOUD_OPTIONS,
  'untag service install edge': edge.SERVICE_EDGE_OPTIONS,
  'untag service remove cloud, edge': edge.SERVICE_REMOVE_OPTIONS,
}

function table(options: Options): string {
  const rows = listOptions(options).map((o) => {
    const flag = o.placeholder === '' ? `--${o.flag}` : `--${o.flag} ${o.placeholder.replaceAll('|', '\\|')}`
    const fallback = o.fallback === undefined || o.placeholder === '' ? '' : `\`${String(o.fallback)}\``
    return `| \`${flag}\` | \`${o.env}\` | ${fallback} | ${o.help} |`
  })
  return ['| option | environment | default | meaning |', '|---|---|---|---|', ...rows].join('\n')
}

/** Replaces the tables of options in docs/reference/configuration.md. */
export function configurationPage(page: string): string {
  const tables = Object.entries(COMMANDS).map(([command, options]) => `### ${command}\n\n${table(options)}`)
  return replaceMarked(page, '<!-- from host/settings -->', '<!-- end -->', `\n\n${tables.join('\n\n')}\n\n`)
}
