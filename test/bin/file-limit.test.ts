import { existsSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { ensureBuilt } from '../support/built.ts'
import { temporaryFolder } from '../support/databases.ts'
import { startProcess } from '../support/processes.ts'

const WITH_100_FILES = ['sh', '-c', 'ulimit -n 100; exec "$@"', 'sh']

describe.skipIf(!existsSync('/proc/self/limits'))('too few file descriptors (needs /proc, which Linux has)', () => {
  it.each(['cloud', 'edge'])('stop the start of untag %s with an error that names the fix', async (command) => {
    ensureBuilt()
    const data = temporaryFolder('file-limit')
    const args = [command, '--port=0', `--data=${data}`]
    await expect(startProcess(args, { through: WITH_100_FILES })).rejects.toThrow(
      /ended with 1: this process may open 100 files at once and needs 256: raise the limit with "ulimit -n 4096", or LimitNOFILE= of its systemd unit\n$/,
    )
  })
})
