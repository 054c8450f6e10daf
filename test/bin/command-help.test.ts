import { describe, expect, it } from 'vitest'
import { COMMANDS } from '../../bin/command-table.ts'
import { COMMAND_GROUPS } from '../../bin/main.ts'
import { readOptions } from '../../host/options.ts'
import { CLOUD_OPTIONS } from '../../host/settings/cloud.ts'
import { runCommand } from '../support/commands.ts'

describe('the help of the command line', () => {
  it('lists each command in one group, in lines that fit on a screen', async () => {
    const grouped = COMMAND_GROUPS.flatMap(([, words]) => words)
    expect(grouped.toSorted()).toEqual([...new Set(COMMANDS.map(({ words }) => words[0]))].toSorted())
    const { code, stdout } = await runCommand(['--help'])
    expect(code).toBe(0)
    for (const [title] of COMMAND_GROUPS) expect(stdout).toContain(`\n${title}\n  untag `)
    expect(stdout).toMatch(/untag simulate … .*untag simulate --help lists them/)
    expect(stdout.split('\n').filter((line) => line.length > 120)).toEqual([])
  })

  it.each([[[]], [['keys']], [['cloud']], [['policy', 'explain']], [['edge', 'enrol', '--data', 'x']]])(
    'has -h as --help: %j',
    async (words) => {
      const help = await runCommand([...words, '--help'])
      expect(await runCommand([...words, '-h'])).toEqual(help)
      expect(help).toMatchObject({ code: 0, stderr: '' })
    },
  )

  it('answers an unknown command with two lines', async () => {
    expect(await runCommand(['clod'])).toEqual({
      code: 2,
      stdout: '',
      stderr: 'there is no command "clod"; did you mean cloud?\nuntag --help lists all commands.\n',
    })
    expect(await runCommand(['keys', 'crate', '--account', 'shop'])).toEqual({
      code: 2,
      stdout: '',
      stderr:
        'there is no command "keys crate"; did you mean keys create?\nuntag keys --help lists the commands that begin with keys.\n',
    })
  })

  it('reports an unknown option with its value once', () => {
    expect(() => readOptions(CLOUD_OPTIONS, ['--prt', '1'], {})).toThrow(/^there is no option --prt; did you mean .*$/)
    expect(() => readOptions(CLOUD_OPTIONS, ['--prt=1', '2'], {})).toThrow(/--prt[^]*\n"2" is not an option/)
  })
})
