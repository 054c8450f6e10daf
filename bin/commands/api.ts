import { printable } from '../../policy/printable.ts'
import { spellingHint } from '../../policy/fold-text.ts'
import { createClient, UntagError } from '../../clients/typescript/client.ts'
import type { OperationName } from '../../clients/typescript/exchange.ts'
import {
  readOperations,
  type DescribedApi,
  type DescribedOperation,
  describeOperation,
  listOperations,
} from '../api/described-operations.ts'
import { tableOf } from '../api/table.ts'
import { requestOfArguments } from '../api/request-of-arguments.ts'
import { ADDRESS_SETTING, connectionFault } from '../api-client.ts'
import { describeOptions, readOptions, WrongUsage } from '../../host/options.ts'
import { writesJson } from '../../host/output.ts'
import { API_OPTIONS } from '../../host/settings/tools.ts'
import { fetchTrustingFile } from '../../host/tls/private-ca.ts'

const OWN_FLAGS: ReadonlySet<string> = new Set(Object.values(API_OPTIONS).map((option) => `--${option.flag}`))

/** Help for the command or for one operation. Needs no network. */
export function apiHelp(args: readonly string[]): string {
  const api = readOperations()
  const name = args.find((arg) => !arg.startsWith('-'))
  if (name === undefined)
    return `untag api OPERATION --field value …: Call an operation of the API\n\n${describeOptions(API_OPTIONS)}\n\n${listOperations(api)}`
  return `${describeOperation(find(api, name), api)}\n${describeOptions(API_OPTIONS)}\n`
}

/** Calls one operation. Prints the response to stdout, or the error to stderr. Returns the exit code. */
export async function runApi(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const api = readOperations()
  if (args.includes('--list')) {
    process.stdout.write(
      writesJson() ? `${JSON.stringify({ operations: [...api.operations.keys()] })}\n` : listOperations(api),
    )
    return 0
  }
  const [name, ...rest] = withoutSwitch(args)
  if (name === undefined || name.startsWith('-'))
    throw new WrongUsage(['OPERATION is missing: untag api --list shows all operations'])
  const operation = find(api, name)
  const { own, fields } = divide(rest)
  const { key, baseUrl, ca, idempotencyKey } = readOptions(API_OPTIONS, own, env)
  const request = requestOfArguments(fields, operation.request, api.components, name)
  const client = createClient({ baseUrl, key, platform: { fetch: fetchTrustingFile(ca) } })
  try {
    const answer: unknown = await client.call(
      name as OperationName,
      request as never,
      idempotencyKey === undefined ? {} : { idempotencyKey },
    )
    process.stdout.write(answerText(answer, process.stdout.isTTY && !writesJson(), process.stdout.columns || 80))
    return 0
  } catch (error) {
    if (!(error instanceof UntagError)) throw error
    const shown = withRemedy(error, baseUrl)
    process.stderr.write(writesJson() ? `${printable(JSON.stringify(refusalFields(shown)))}\n` : refusal(shown))
    if (key === undefined && error.status === 401 && !writesJson())
      process.stderr.write('Set UNTAG_KEY to your API key, or use --key KEY.\n')
    return 1
  }
}

/**
 * What `untag api` prints of an answer. A text, such as CSV, stays as it is for programs; in a terminal its characters
 * cannot move the cursor, and its last line ends. There a list becomes a table of `columns` characters.
 */
export function answerText(answer: unknown, isTerminal: boolean, columns = 80): string {
  if (typeof answer === 'string' && !isTerminal) return answer
  const lines =
    typeof answer === 'string'
      ? answer.replace(/\r?\n$/, '').split(/\r?\n/)
      : ((isTerminal ? tableOf(answer, columns) : undefined) ?? JSON.stringify(answer, null, 2).split('\n'))
  return `${lines.map((line) => line.split('\t').map(printable).join('\t')).join('\n')}\n`
}

/** The error with the reason and remedy of a failed connection. Other errors stay as they are. */
function withRemedy(error: UntagError, baseUrl: string): UntagError {
  const fault = error.code === 'network' ? connectionFault(error, baseUrl, ADDRESS_SETTING) : undefined
  return fault === undefined
    ? error
    : new UntagError(`${baseUrl} cannot be reached: ${fault}`, { status: error.status, code: error.code })
}

function find({ operations }: DescribedApi, name: string): DescribedOperation {
  const operation = operations.get(name)
  if (operation) return operation
  const near = spellingHint(name, operations.keys())
  throw new WrongUsage([
    `there is no operation ${name}${near === '' ? '; untag api --list shows all operations' : near}`,
  ])
}

/** Separates the options of the command from the fields of the request. */
function divide(args: readonly string[]): { own: string[]; fields: string[] } {
  const own: string[] = []
  const fields: string[] = []
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] ?? ''
    const flag = arg.split('=', 1)[0] ?? ''
    if (!OWN_FLAGS.has(flag)) fields.push(arg)
    else if (arg === flag && i + 1 < args.length) own.push(arg, args[++i] ?? '')
    else own.push(arg)
  }
  return { own, fields }
}

/** Removes `--json` without a value, because this option selects JSON output. With a value, `--json` is the request. */
function withoutSwitch(args: readonly string[]): string[] {
  return args.filter((arg, i) => arg !== '--json' || (args[i + 1] !== undefined && !args[i + 1]?.startsWith('--')))
}

function refusalFields(error: UntagError): object {
  const { status, code, reason, details, allowedNext, requiredUpgrade, currentPackage, requestId } = error
  return {
    error: error.message,
    code,
    status,
    reason,
    ...(details.length > 0 && { details }),
    ...(allowedNext.length > 0 && { allowedNext }),
    requiredUpgrade,
    currentPackage,
    requestId,
  }
}

function refusal(error: UntagError): string {
  const { status, code, reason, details, allowedNext, requiredUpgrade, currentPackage, requestId } = error
  const lines = [
    `${error.message} (${[status === 0 ? '' : String(status), code, reason ?? ''].filter((part) => part !== '').join(', ')})`,
    // The message of a single wrong field is the headline already.
    ...details
      .filter((detail) => !error.message.includes(detail.message))
      .map((detail) => `  ${detail.path || 'the request'}: ${detail.message}`),
    ...(allowedNext.length > 0 ? [`  allowed: ${allowedNext.join(', ')}`] : []),
    ...(requiredUpgrade === undefined ? [] : [`  needs ${requiredUpgrade}, has ${currentPackage ?? 'less'}`]),
    ...(requestId === undefined ? [] : [`  request ${requestId}`]),
  ]
  return `${lines.map(printable).join('\n')}\n`
}
