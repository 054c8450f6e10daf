/** Texts of one language: fixed texts, texts with parameters, and groups of texts. */
export interface TextTree {
  readonly [key: string]: string | ((...values: never[]) => string) | TextTree
}

/** Texts of one part of the console in both languages. */
export interface Bilingual<T> {
  readonly en: T
  readonly de: T
}

/** Declares texts in both languages. A text that is missing in one language is a type error. */
export function bilingual<T extends TextTree>(both: { en: T; de: NoInfer<T> }): Bilingual<T> {
  return both
}
