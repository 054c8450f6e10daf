import { first } from './elements.ts'
import type { Parameter } from './elements.ts'

/** Names of status codes (LLRP 1.0.1, 14.2). */
const STATUS_NAMES: Readonly<Record<number, string>> = {
  100: 'parameter error',
  101: 'field error',
  102: 'unexpected parameter',
  103: 'missing parameter',
  104: 'parameter twice',
  105: 'too many parameters',
  106: 'too many fields',
  107: 'unknown parameter',
  108: 'unknown field',
  109: 'unsupported message',
  110: 'unsupported version',
  111: 'unsupported parameter',
  200: 'parameter error',
  201: 'field error',
  202: 'unexpected parameter',
  203: 'missing parameter',
  204: 'parameter twice',
  205: 'too many parameters',
  206: 'too many fields',
  207: 'unknown parameter',
  208: 'unknown field',
  209: 'unsupported parameter',
  300: 'invalid attribute',
  301: 'attribute out of range',
  401: 'device error',
}

/** Describes a status for a person: the standard's name, the reader's description, then the parameter or field. */
export function statusText(status: Parameter<'LLRPStatus'> | undefined): string {
  if (!status) return 'the answer has no status'
  const { StatusCode: code, ErrorDescription: description } = status.fields
  const parameter = first(status, 'ParameterError')
  const field = first(status, 'FieldError') ?? first(parameter, 'FieldError')
  const where = [
    parameter && `parameter ${parameter.fields.ParameterType}`,
    field && `field ${field.fields.FieldNum}`,
  ].filter((part) => part !== undefined)
  return [`${STATUS_NAMES[code] ?? 'refused'} (${code})`, ...(description ? [description] : []), ...where].join(', ')
}
