import { spawnSync } from 'node:child_process'
import { beforeAll, describe, expect, it } from 'vitest'
import { ensureBuilt } from '../support/built.ts'
import { runCommand } from '../support/commands.ts'
import { runProcess } from '../support/processes.ts'

describe('untag completion', () => {
  let script = ''
  // The build describes the operations.
  beforeAll(async () => {
    await ensureBuilt()
    const { code, stdout } = await runProcess(['completion', 'bash'])
    expect(code).toBe(0)
    script = stdout
  })

  /** What bash offers for the last word of this line. */
  function offered(line: string): string[] {
    const words = line.split(' ')
    const ask = `COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}; _untag; printf '%s\\n' "\${COMPREPLY[@]}"`
    const { stdout, stderr } = spawnSync('bash', ['-c', `${script}\n${ask}`], { encoding: 'utf8' })
    expect(stderr).toBe('')
    return stdout.split('\n').filter((word) => word !== '')
  }

  it.each([
    ['untag ba', ['backup']],
    ['untag keys r', ['revoke', 'roll', 'rotate']],
    ['untag keys create --acc', ['--account']],
    ['untag service install ', ['cloud', 'edge']],
    ['untag edge --conf', ['--config']],
    ['untag edge en', ['enrol']],
    ['untag trigger checkout.', ['checkout.completed']],
    ['untag api checkI', ['checkIn']],
    ['untag api insertProduct --na', ['--name']],
    ['untag api insertProduct --name Ring --ea', ['--ean']],
    ['untag api startCheckout --items.0.q', ['--items.0.quantity']],
    ['untag api checkIn --k', ['--key']],
    ['untag completion ', ['--help', '--json', 'bash', 'zsh']],
    ['untag api fetchAlarms --state ', ['acknowledged', 'disposed', 'open']],
    ['untag api fetchAlarms --storeId st_1 --state d', ['disposed']],
    ['untag api fetchAlarms --state open --disp', ['--disposition']],
    ['untag cloud --log-level w', ['warn']],
    ['untag backup --data /tm', []],
    ['untag nonsense ', []],
  ])('completes %j', (line, words) => {
    expect(offered(line).toSorted()).toEqual(words)
  })

  it('writes the script of zsh with the completion of bash', async () => {
    const { stdout } = await runProcess(['completion', 'zsh'])
    expect(stdout).toContain('bashcompinit')
    expect(await runCommand(['completion', 'fish'])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('must be one of bash, zsh, not "fish"'),
    })
  })
})

describe('untag trigger', () => {
  it('suggests events, and lists them in its help', async () => {
    const unknown = (event: string) => runCommand(['trigger', event, '--key', 'untag_test_sk_x'])
    expect((await unknown('checkout.complete')).stderr).toMatch(
      /^there is no event checkout\.complete; did you mean checkout\.completed\?/,
    )
    expect(await unknown('nonsense.at.all')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('untag trigger --help lists all events'),
    })
    const { stdout } = await runCommand(['trigger', '--help'])
    expect(stdout).toMatch(/^ {2}checkout\.completed +\S/m)
    expect(stdout).toMatch(/--webhook ID/)
  })
})
