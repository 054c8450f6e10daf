/**
 * JSON that is written already: documents kept as text are put into an answer as they are, because
 * reading them only to write them again takes longer than fetching them. `T` is what the text stands for.
 */
export class RawJson<T> {
  readonly text: string
  declare readonly valueType: T
  constructor(text: string) {
    this.text = text
  }
}

/** What an operation may answer: a value with some fields as text, or a whole object as text. */
export type Serializable<T> = RawJson<T> | { [K in keyof T]: T[K] | RawJson<T[K]> }

/** A list of documents. */
export function rawList<T>(documents: readonly string[]): RawJson<T[]> {
  return new RawJson(`[${documents.join(',')}]`)
}

/** The body of an answer: `success`, then the fields. */
export function serializeResponse(answer: object): string {
  if (answer instanceof RawJson)
    return answer.text === '{}' ? '{"success":true}' : `{"success":true,${answer.text.slice(1)}`
  let body = '{"success":true'
  for (const [name, value] of Object.entries(answer)) {
    if (name === 'success') continue
    const text = value instanceof RawJson ? value.text : JSON.stringify(value)
    if (text !== undefined) body += `,${JSON.stringify(name)}:${text}`
  }
  return `${body}}`
}
