import { spawnSync } from 'node:child_process'
import { chmodSync, renameSync } from 'node:fs'
import { join } from 'node:path'

/** Runs openssl in a folder. */
function openssl(folder: string, ...args: readonly string[]): void {
  const { status, stderr } = spawnSync('openssl', args, { cwd: folder, encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
}

const FRESH = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']

/** A private CA with its files `ca.pem` and `ca.key` in a folder. */
export interface TestCa {
  /** Path of the certificate of the CA. */
  readonly file: string
  /**
   * Writes NAME.pem and NAME.key. `names`: subject alternative names, such as `IP:127.0.0.1`. Both files are complete when
   * they get their names.
   */
  issue(name: string, names: string, days?: number): { cert: string; key: string }
}

/** Creates a private CA in this folder with openssl. */
export function newTestCa(folder: string): TestCa {
  openssl(folder, ...FRESH, '-days', '30', '-subj', '/CN=store-ca', '-keyout', 'ca.key', '-out', 'ca.pem')
  return {
    file: join(folder, 'ca.pem'),
    issue(name, names, days = 20) {
      const files = { cert: join(folder, `${name}.pem`), key: join(folder, `${name}.key`) }
      const extensions = [`subjectAltName=${names}`, 'basicConstraints=critical,CA:FALSE']
      const signer = ['-CA', 'ca.pem', '-CAkey', 'ca.key', '-keyout', 'new.key', '-out', 'new.pem']
      const fields = ['-days', String(days), '-subj', '/CN=server', ...extensions.flatMap((e) => ['-addext', e])]
      openssl(folder, ...FRESH, ...fields, ...signer)
      chmodSync(join(folder, 'new.key'), 0o600)
      renameSync(join(folder, 'new.key'), files.key)
      renameSync(join(folder, 'new.pem'), files.cert)
      return files
    },
  }
}
