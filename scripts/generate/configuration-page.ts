import {
  API_OPTIONS,
  BACKUP_OPTIONS,
  BROKER_SYNC_OPTIONS,
  CLOUD_OPTIONS,
  COMPLETION_OPTIONS,
  DATABASE_COPY_OPTIONS,
  DOCTOR_OPTIONS,
  EDGE_CREDENTIAL_OPTIONS,
  EDGE_ENROL_OPTIONS,
  EDGE_LINK_OPTIONS,
  EDGE_OPTIONS,
  EDGE_PAIR_OPTIONS,
  EDGE_PAIRINGS_OPTIONS,
  EDGE_ROTATE_KEY_OPTIONS,
  KEYS_CHECK_OPTIONS,
  EDGE_WALK_TEST_OPTIONS,
  KEYS_CREATE_OPTIONS,
  KEYS_LIST_OPTIONS,
  KEYS_REVOKE_OPTIONS,
  KEYS_ROLL_OPTIONS,
  KEYS_ROTATE_OPTIONS,
  LISTEN_OPTIONS,
  MIGRATE_OPTIONS,
  POLICY_EXPLAIN_OPTIONS,
  RESEAL_OPTIONS,
  RESTORE_OPTIONS,
  SERVICE_CLOUD_OPTIONS,
  SERVICE_EDGE_OPTIONS,
  SERVICE_REMOVE_OPTIONS,
  SIMULATE_NFC_OPTIONS,
  SIMULATE_OPTIONS,
  SIMULATE_PSP_OPTIONS,
  SIMULATE_VENDOR_OPTIONS,
  START_OPTIONS,
  TRIGGER_OPTIONS,
  USERS_INVITE_OPTIONS,
  USERS_LIST_OPTIONS,
  USERS_REMOVE_OPTIONS,
  VERIFY_AUDIT_OPTIONS,
} from '../../host/settings.ts'
import { listOptions, type Options } from '../../host/options.ts'
import { replaceMarked } from './contract-page.ts'

/** The options of each command, in the order of the page. */
export const COMMANDS: Record<string, Options> = {
  'untag start': START_OPTIONS,
  'untag cloud': CLOUD_OPTIONS,
  'untag broker sync': BROKER_SYNC_OPTIONS,
  'untag keys create': KEYS_CREATE_OPTIONS,
  'untag keys check': KEYS_CHECK_OPTIONS,
  'untag keys list': KEYS_LIST_OPTIONS,
  'untag keys roll': KEYS_ROLL_OPTIONS,
  'untag keys rotate': KEYS_ROTATE_OPTIONS,
  'untag keys revoke': KEYS_REVOKE_OPTIONS,
  'untag users invite': USERS_INVITE_OPTIONS,
  'untag users list': USERS_LIST_OPTIONS,
  'untag users remove': USERS_REMOVE_OPTIONS,
  'untag verify-audit': VERIFY_AUDIT_OPTIONS,
  'untag reseal': RESEAL_OPTIONS,
  'untag migrate': MIGRATE_OPTIONS,
  'untag database copy': DATABASE_COPY_OPTIONS,
  'untag backup': BACKUP_OPTIONS,
  'untag restore': RESTORE_OPTIONS,
  'untag edge': EDGE_OPTIONS,
  'untag edge enrol': EDGE_ENROL_OPTIONS,
  'untag edge credential': EDGE_CREDENTIAL_OPTIONS,
  'untag edge link': EDGE_LINK_OPTIONS,
  'untag edge pair': EDGE_PAIR_OPTIONS,
  'untag edge pairings': EDGE_PAIRINGS_OPTIONS,
  'untag edge rotate-key': EDGE_ROTATE_KEY_OPTIONS,
  'untag edge walk-test': EDGE_WALK_TEST_OPTIONS,
  'untag api': API_OPTIONS,
  'untag listen': LISTEN_OPTIONS,
  'untag trigger': TRIGGER_OPTIONS,
  'untag policy explain': POLICY_EXPLAIN_OPTIONS,
  'untag simulate': SIMULATE_OPTIONS,
  'untag simulate nfc': SIMULATE_NFC_OPTIONS,
  'untag simulate pos, erp': SIMULATE_VENDOR_OPTIONS,
  'untag simulate psp': SIMULATE_PSP_OPTIONS,
  'untag completion': COMPLETION_OPTIONS,
  'untag doctor': DOCTOR_OPTIONS,
  'untag service install cloud': SERVICE_CLOUD_OPTIONS,
  'untag service install edge': SERVICE_EDGE_OPTIONS,
  'untag service remove cloud, edge': SERVICE_REMOVE_OPTIONS,
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
  return replaceMarked(page, '<!-- from host/settings.ts -->', '<!-- end -->', `\n\n${tables.join('\n\n')}\n\n`)
}
