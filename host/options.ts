import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { spellingHint } from '../policy/fold-text.ts'

/** One setting: an option of the command line and its environment variable. */
export interface Option<T> {
  /** Without the dashes. */
  readonly flag: string
  readonly env: string
  /** Name of the value in the help, such as `PORT`. Empty for a switch. */
  readonly placeholder: string
  readonly help: string
  readonly fallback: T
  /** A secret may also be read from a file (`--FLAG-file`, `ENV_FILE`), because process lists show arguments. */
  readonly isSecret?: boolean
  /**
   * Parses a value. In an error message the text of a fault, such as `must be true or false`, follows the name of the
   * option.
   */
  read(text: string): { value: T } | { fault: string }
}

/** The command line or the environment is invalid. The process exits with code 2. */
export class WrongUsage extends Error {
  override name = 'WrongUsage'
  readonly faults: readonly string[]
  /** Words of the command line whose `--help` explains the faults; undefined: those of the command. */
  readonly about: string | undefined
  constructor(faults: readonly string[], about?: string) {
    super(faults.join('\n'))
    this.faults = faults
    this.about = about
  }
}

type Common = Pick<Option<unknown>, 'flag' | 'env' | 'help' | 'isSecret'>

/** A text. Without `fallback` it is undefined by default. */
export function text<T extends string | undefined = undefined>(
  option: Common & { placeholder: string; fallback?: T },
): Option<string | T> {
  return {
    ...option,
    fallback: option.fallback as T,
    read: (value) => (value === '' ? { fault: 'must not be empty' } : { value }),
  }
}

export function wholeNumber({
  min,
  max,
  ...option
}: Common & { placeholder: string; fallback: number; min: number; max: number }): Option<number> {
  return {
    ...option,
    read(value) {
      const number = /^\d{1,9}$/.test(value) ? Number(value) : Number.NaN
      return number >= min && number <= max
        ? { value: number }
        : { fault: `must be a whole number from ${min} to ${max}, not "${value}"` }
    },
  }
}

/** An amount in EUR such as `12.90`. The value is in cents; undefined by default. */
export function euros(option: Common): Option<number | undefined> {
  return {
    ...option,
    placeholder: 'EUR',
    fallback: undefined,
    read(value) {
      return /^\d{1,7}(?:\.\d{1,2})?$/.test(value)
        ? { value: Math.round(Number(value) * 100) }
        : { fault: `must be an amount such as 12.90, not "${value}"` }
    },
  }
}

/** A rate per minute such as `30/min` or `30`. */
export function perMinute({ max, ...option }: Common & { fallback: number; max: number }): Option<number> {
  return {
    ...option,
    placeholder: 'N/min',
    read(value) {
      const number = Number(/^(\d{1,6})(?:\/min)?$/.exec(value)?.[1])
      return number <= max ? { value: number } : { fault: `must be a rate from 0/min to ${max}/min, not "${value}"` }
    },
  }
}

export function port(option: Common & { fallback: number }): Option<number> {
  return wholeNumber({ ...option, placeholder: 'PORT', min: 0, max: 65_535 })
}

/** A port that is undefined by default. */
export function optionalPort(option: Common): Option<number | undefined> {
  return { ...port({ ...option, fallback: 0 }), fallback: undefined }
}

export function choice<T extends string>({
  values,
  ...option
}: Common & { values: readonly T[]; fallback: T }): Option<T> {
  return {
    ...option,
    placeholder: values.join('|'),
    read: (value) =>
      (values as readonly string[]).includes(value)
        ? { value: value as T }
        : { fault: `must be one of ${values.join(', ')}, not "${value}"` },
  }
}

export function url({ protocols, ...option }: Common & { protocols: readonly string[] }): Option<string | undefined> {
  return {
    ...option,
    placeholder: 'URL',
    fallback: undefined,
    read(value) {
      const parsed = URL.canParse(value) ? new URL(value) : undefined
      return parsed && protocols.includes(parsed.protocol)
        ? { value: value.replace(/\/+$/, '') }
        : {
            fault: `must be an address beginning with ${protocols.map((p) => (p === 'mailto:' ? p : `${p}//`)).join(' or ')}`,
          }
    },
  }
}

/** All options, with the file option after each secret option. */
export function listOptions(options: Options): Option<unknown>[] {
  return Object.values(options).flatMap((option) => (option.isSecret ? [option, fileForm(option)] : [option]))
}

function fileForm({ flag: name, env }: Option<unknown>): Option<unknown> {
  const help = `File that contains only the value of --${name}`
  return text({ flag: `${name}-file`, env: `${env}_FILE`, help, placeholder: 'FILE' })
}

/** A switch. The environment variable is `true` or `false`. */
export function flag(option: Common): Option<boolean> {
  return {
    ...option,
    placeholder: '',
    fallback: false,
    read: (value) =>
      value === 'true' || value === 'false' ? { value: value === 'true' } : { fault: 'must be true or false' },
  }
}

export type Options = Record<string, Option<unknown>>
export type Values<O extends Options> = { [K in keyof O]: O[K] extends Option<infer T> ? T : never }

/**
 * Reads options. The command line overrides the environment, which overrides the default. The last of repeated options
 * is used. Throws `WrongUsage` with all faults.
 */
export function readOptions<O extends Options>(options: O, args: readonly string[], env: NodeJS.ProcessEnv): Values<O> {
  const faults: string[] = []
  const argumentValues = new Map<string, string>()
  for (const { flag: name, value } of tokensOf(options, args, faults)) argumentValues.set(name, value)
  const values: Record<string, unknown> = {}
  for (const [name, option] of Object.entries(options)) {
    const forms = writtenForms(option, argumentValues, env)
    const [written, other] = forms.some(({ isOnLine }) => isOnLine) ? forms.filter(({ isOnLine }) => isOnLine) : forms
    if (written === undefined) {
      values[name] = option.fallback
      continue
    }
    if (other !== undefined) {
      faults.push(`${written.source} and ${other.source} cannot be used together: use one of them`)
      continue
    }
    const read = written.isFile ? readFrom(option, written.value) : option.read(written.value)
    if ('fault' in read) faults.push(`${written.source} ${read.fault}`)
    else values[name] = read.value
  }
  if (faults.length > 0) throw new WrongUsage(faults)
  return values as Values<O>
}

interface Written {
  value: string
  /** The option or variable, for error texts. */
  source: string
  isOnLine: boolean
  /** `value` is the name of the file that contains the value. */
  isFile: boolean
}

/** Finds the value of an option and the name of its file, in the command line or else in the environment. */
function writtenForms(
  option: Option<unknown>,
  argumentValues: ReadonlyMap<string, string>,
  env: NodeJS.ProcessEnv,
): readonly Written[] {
  return (option.isSecret ? [option, fileForm(option)] : [option]).flatMap((form): Written[] => {
    const isFile = form !== option
    const onLine = argumentValues.get(form.flag)
    if (onLine !== undefined) return [{ value: onLine, source: `--${form.flag}`, isOnLine: true, isFile }]
    const value = env[form.env]
    return value === undefined || value === '' ? [] : [{ value, source: form.env, isOnLine: false, isFile }]
  })
}

/** Reads the value from a file and trims white space. */
function readFrom<T>(option: Option<T>, file: string): { value: T } | { fault: string } {
  try {
    const read = option.read(readFileSync(file, 'utf8').trim())
    return 'fault' in read ? { fault: `(${file}) ${read.fault}` } : read
  } catch (error) {
    return { fault: `cannot be read: ${(error as Error).message}` }
  }
}

function tokensOf(options: Options, args: readonly string[], faults: string[]): { flag: string; value: string }[] {
  const config = Object.fromEntries(
    listOptions(options).map((o) => [
      o.flag,
      { type: o.placeholder === '' ? ('boolean' as const) : ('string' as const), multiple: true },
    ]),
  )
  const { tokens } = parseArgs({
    args: [...args],
    options: config,
    strict: false,
    allowPositionals: true,
    tokens: true,
  })
  const read: { flag: string; value: string }[] = []
  // The value of an unknown option is no fault of its own.
  let mayBeValue = false
  for (const token of tokens) {
    if (token.kind === 'positional' && !mayBeValue)
      faults.push(`"${token.value}" is not an option: options start with --`)
    mayBeValue = false
    if (token.kind !== 'option') continue
    const option = listOptions(options).find((o) => o.flag === token.name)
    mayBeValue = !option && token.value === undefined
    if (!option) faults.push(`there is no option ${token.rawName}${suggestion(token.name, options)}`)
    else if (option.placeholder === '') read.push({ flag: token.name, value: token.value ?? 'true' })
    else if (token.value === undefined)
      faults.push(`--${token.name} needs a value: --${token.name} ${option.placeholder}`)
    else read.push({ flag: token.name, value: token.value })
  }
  return read
}

function suggestion(name: string, options: Options): string {
  return spellingHint(
    name,
    listOptions(options).map((option) => option.flag),
  ).replaceAll(/(mean | or )/g, '$1--')
}

/** The options as lines of help: option, meaning, default and environment variable. */
export function describeOptions(options: Options): string {
  return listOptions(options)
    .map((o) => {
      const left = `  --${o.flag}${o.placeholder === '' ? '' : ` ${o.placeholder}`}`
      const fallback = o.fallback === undefined || o.placeholder === '' ? '' : ` (default ${String(o.fallback)})`
      return `${left.padEnd(34)} ${o.help}${fallback} [${o.env}]`
    })
    .join('\n')
}
