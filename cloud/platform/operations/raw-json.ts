/**
 * Serialized JSON. Stored JSON goes into a response as text, because parsing and serializing the JSON would take longer
 * than reading it. `T` is the type of the value.
 */
export class RawJson<T> {
  readonly text: string
  declare readonly valueType: T
  constructor(text: string) {
    this.text = text
  }
}

/** A response that is serialized already, as a whole or in some of its fields. */
export type Serializable<T> = RawJson<T> | { [K in keyof T]: T[K] | RawJson<T[K]> }

/** Joins serialized documents to a list. */
export function rawList<T>(documents: readonly string[]): RawJson<T[]> {
  return new RawJson(`[${documents.join(',')}]`)
}

/** Serializes a response: `success` first, then the fields. */
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
