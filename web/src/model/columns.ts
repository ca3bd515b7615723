// Columns are views on the bytes behind the header: nothing is copied.

import { PageError, integer, record } from "./checks";

const ARRAYS = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, i32: Int32Array, f64: Float64Array };

type ColumnType = keyof typeof ARRAYS;
type ArrayOf<T extends ColumnType> = InstanceType<(typeof ARRAYS)[T]>;

export type ColumnReader = <T extends ColumnType>(value: unknown, name: string, types: T[], length: number) => ArrayOf<T>;

export function columnReader(data: Uint8Array): ColumnReader {
  return <T extends ColumnType>(value: unknown, name: string, types: T[], length: number): ArrayOf<T> => {
    const column = record(value, `column ${name}`);
    const type = types.find((known) => known === column.type);
    if (!type) throw new PageError(`The data of this page is damaged: column ${name} is not of type ${types.join(" or ")}.`);
    const at = integer(column.at, `the place of column ${name}`, 0, Number.MAX_SAFE_INTEGER);
    const given = integer(column.length, `the length of column ${name}`, 0, 2 ** 31 - 1);
    if (given !== length)
      throw new PageError(`The data of this page is damaged: column ${name} has ${given} values, not ${length}.`);
    const array = ARRAYS[type];
    if (at % 8 !== 0 || at + given * array.BYTES_PER_ELEMENT > data.byteLength)
      throw new PageError(`The data of this page is damaged: column ${name} lies outside of it.`);
    return new array(data.buffer as ArrayBuffer, data.byteOffset + at, given) as ArrayOf<T>;
  };
}
