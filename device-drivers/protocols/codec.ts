/** Bytes on one side, frames on the other. Pure: no time, no transport. Bounded whatever arrives. */
export interface Codec<Frame> {
  /** Takes the next bytes in whatever pieces they arrive and gives the frames that are now complete. */
  push(chunk: Uint8Array): Frame[]
  encode(frame: Frame): Uint8Array
}

/** Bytes that were no part of any frame. */
export interface Noise {
  readonly bytes: number
  readonly detail: string
}

/** A codec for a line that may carry noise: it finds the next good frame by itself. */
export interface ResyncingCodec<Frame> extends Codec<Frame> {
  /** An input like any other: nothing has arrived for as long as the protocol allows within a frame. */
  silence(): Frame[]
  /** What has been thrown away since the last call, or null. */
  takeNoise(): Noise | null
  /** Bytes kept for a frame that is not complete yet. */
  readonly held: number
}
