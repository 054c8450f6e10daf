import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { COMMANDS } from '../../bin/command-table.ts'
import { COMMAND_GROUPS } from '../../bin/main.ts'
import { readOptions } from '../../host/options.ts'
import { CLOUD_OPTIONS } from '../../host/settings/cloud.ts'
import { LISTEN_OPTIONS } from '../../host/settings/tools.ts'
import { noteDemo, runningDemo } from '../../bin/demo-place.ts'
import { makeFolder } from '../../host/backup/files.ts'
import { temporaryFolder } from '../support/databases.ts'
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

  it('lists the second words of a group, also of one whose first word is a command', async () => {
    for (const [first, words] of [
      ['edge', ['foo']],
      ['edge', ['foo', '--data', 'x']],
      ['keys', ['make']],
    ] as const) {
      const { code, stderr } = await runCommand([first, ...words])
      const [fault, more] = stderr.split('\n')
      expect([code, fault]).toEqual([
        2,
        expect.stringContaining(`there is no command "${first} ${words[0]}"; the words after`),
      ])
      expect(fault).toContain(first === 'edge' ? 'credential, enrol, link' : 'check, create, list')
      expect(more).toContain(`untag ${first} --help`)
    }
    expect((await runCommand(['edge', 'enroll'])).stderr).toContain('did you mean edge enrol?')
  })

  it('explains in plain words that the data of a restore must be a folder', async () => {
    const folder = temporaryFolder('restore-to-file')
    const file = join(folder, 'file')
    writeFileSync(file, '')
    for (const data of [file, join(file, 'below')])
      expect(() => makeFolder(data)).toThrow(`${data} is a file, or below one: name a folder`)
    expect(() => makeFolder(join(folder, 'new', 'folder'))).not.toThrow()
  })

  it('finds the folder of a running demo of this user', async () => {
    const folder = temporaryFolder('demo-place')
    expect(runningDemo(folder)).toBeUndefined()
    const data = join(folder, 'edge')
    const forget = noteDemo(data, folder)
    // A folder without an agent is no demo.
    expect(runningDemo(folder)).toBeUndefined()
    mkdirSync(data)
    writeFileSync(join(data, 'agent.json'), '{}')
    expect(runningDemo(folder)).toBe(data)
    await forget()
    expect(runningDemo(folder)).toBeUndefined()
  })

  it('names --store to a user of --store-id', () => {
    expect(() => readOptions(LISTEN_OPTIONS, ['--store-id', 'st_1'], {})).toThrow(
      /^there is no option --store-id; did you mean --store\?$/,
    )
  })

  it('reports an unknown option with its value once', () => {
    expect(() => readOptions(CLOUD_OPTIONS, ['--prt', '1'], {})).toThrow(/^there is no option --prt; did you mean .*$/)
    expect(() => readOptions(CLOUD_OPTIONS, ['--prt=1', '2'], {})).toThrow(/--prt[^]*\n"2" is not an option/)
  })
})
