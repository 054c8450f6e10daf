import { EVENT_TYPES } from '../../cloud/platform/webhooks/event-types.ts'
import { fieldsOf } from '../../cloud/service/description/fields.ts'
import { listOptions, WrongUsage, type Options, type Values } from '../../host/options.ts'
import { API_OPTIONS, type COMPLETION_OPTIONS } from '../../host/settings/tools.ts'
import { readOperations } from '../api/described-operations.ts'

/** Shells for which `untag completion` writes a script. */
const SHELLS = ['bash', 'zsh'] as const

/** The parts of a command that are completed. */
type Completed = readonly { readonly words: readonly string[]; readonly options: Options }[]

/** Prints the script that completes commands and options in a shell. */
export async function runCompletion(
  shell: string,
  { json }: Values<typeof COMPLETION_OPTIONS>,
  commands: Completed,
): Promise<void> {
  if (shell !== 'bash' && shell !== 'zsh')
    throw new WrongUsage([`the shell must be one of ${SHELLS.join(', ')}, not "${shell}"`])
  const script = completionScript(shell, commands)
  process.stdout.write(json ? `${JSON.stringify({ script })}\n` : script)
}

/**
 * The words and options that may follow each beginning of a command, with the operations of `api`, their fields, and the
 * events of `trigger`. The key is the beginning, such as `keys create`; the empty key is the beginning of each command line.
 */
function followers(commands: Completed): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>([['', new Set(['help', 'version', '--help', '--version'])]])
  const add = (key: string, word: string) => void found.set(key, (found.get(key) ?? new Set()).add(word))
  for (const { words, options } of commands) {
    for (const [index, word] of words.entries()) add(words.slice(0, index).join(' '), word)
    const whole = words.join(' ')
    for (const { flag, placeholder } of listOptions(options)) {
      add(whole, `--${flag}`)
      for (const value of valuesIn(placeholder)) add(`${whole} --${flag}`, value)
    }
    add(whole, '--help')
  }
  for (const shell of SHELLS) add('completion', shell)
  for (const event of EVENT_TYPES.keys()) add('trigger', event)
  const { operations, components } = readOperations()
  for (const [operation, { request }] of operations) {
    add('api', operation)
    const described = fieldsOf(request, components, true)
    const fields = described.map(({ name }) => name.replaceAll('[]', '.0'))
    for (const [index, { type }] of described.entries())
      for (const value of valuesIn(type.replaceAll(' ', ''))) add(`api ${operation} --${fields[index]}`, value)
    for (const field of ['json', 'help', ...listOptions(API_OPTIONS).map(({ flag }) => flag), ...fields])
      add(`api ${operation}`, `--${field}`)
  }
  return found
}

/** Types that an alternative may name instead of a value. */
const TYPES: ReadonlySet<string> = new Set(['string', 'number', 'integer', 'boolean', 'object', 'time', 'id', 'null'])

/** The values of a choice such as `json|csv`; none if the text is no choice of words. */
function valuesIn(text: string): string[] {
  const values = text.split('|')
  if (text === 'boolean') return ['true', 'false']
  const isChoice = values.length > 1 && values.every((value) => /^[\w.-]+$/.test(value) && !TYPES.has(value))
  return isChoice ? values : []
}

/** zsh runs the same script through its `bashcompinit`. */
function completionScript(shell: (typeof SHELLS)[number], commands: Completed): string {
  const cases = [...followers(commands)].map(
    ([key, words]) => `    '${key}') words='${[...words].toSorted().join(' ')}' ;;`,
  )
  return [
    `# Completes the commands and options of untag in ${shell}.`,
    ...(shell === 'zsh' ? ['autoload -Uz +X compinit bashcompinit && compinit && bashcompinit'] : []),
    '_untag_words() {',
    '  local words',
    '  case "$1" in',
    ...cases,
    '    *) return 1 ;;',
    '  esac',
    '  echo "$words"',
    '}',
    '_untag() {',
    '  COMPREPLY=()',
    '  local current="${COMP_WORDS[COMP_CWORD]}" key="" word next',
    // The longest beginning of the line that is a beginning of a command.
    '  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do',
    '    [[ "$word" == -* ]] && break',
    '    next="${key:+$key }$word"',
    '    _untag_words "$next" > /dev/null || { [ -n "$key" ] && break || return 0; }',
    '    key="$next"',
    '  done',
    // The values of the option before the cursor.
    '  word="${COMP_WORDS[COMP_CWORD-1]}"',
    '  if [[ "$word" == -* ]] && _untag_words "$key $word" > /dev/null; then key="$key $word"; fi',
    '  COMPREPLY=($(compgen -W "$(_untag_words "$key")" -- "$current"))',
    '  # Without a match, such as for the value of an option, the shell completes file names.',
    '  return 0',
    '}',
    'complete -o default -F _untag untag',
    '',
  ].join('\n')
}
