/** Long texts. */

/** Text of about this many UTF-8 bytes that doesn't repeat, with characters of two and four bytes. */
export function prose(bytes: number): string {
	const words: string[] = [];
	let seed = 7;
	for (let size = 0; size < bytes; ) {
		seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fff_ffff;
		const word = `${seed.toString(36)}${["", "é", "\u{1F680}"][seed % 3]} `;
		words.push(word);
		size += Buffer.byteLength(word);
	}
	return words.join("").trimEnd();
}

/** The text in pieces of at most this many UTF-16 units, never inside a character. */
export function pieces(text: string, units: number): string[] {
	const found: string[] = [];
	for (let from = 0; from < text.length; ) {
		let to = Math.min(text.length, from + units);
		if (to < text.length && /[\uD800-\uDBFF]/.test(text[to - 1]!)) to--;
		found.push(text.slice(from, to));
		from = to;
	}
	return found;
}
