// The page's icon as SVG and as PNG, drawn from the same few numbers: a question's bubble with the answer's tick in it.
import { deflateSync } from "node:zlib";

const ground = [13, 107, 88];
const white = [255, 255, 255];

/** In a square of 24: the bubble, its tail, the tick. */
const bubble = { x: 12, y: 10.6, halfWidth: 7.4, halfHeight: 6.1, radius: 2.6 };
const tail = [
  [8.2, 15.5],
  [13, 15.5],
  [8.2, 20.2],
];
const tick = [
  [8.7, 10.8],
  [11.1, 13.2],
  [15.6, 8.3],
];
const tickWidth = 1.9;

const hex = (colour) => `#${colour.map((part) => part.toString(16).padStart(2, "0")).join("")}`;

export function svgIcon() {
  const { x, y, halfWidth, halfHeight, radius } = bubble;
  const points = (list) => list.map((point) => point.join(" ")).join("L");
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><rect width="24" height="24" rx="5.5" fill="${hex(ground)}"/><path fill="#fff" d="M${points(tail)}Z"/><rect x="${x - halfWidth}" y="${y - halfHeight}" width="${2 * halfWidth}" height="${2 * halfHeight}" rx="${radius}" fill="#fff"/><path fill="none" stroke="${hex(ground)}" stroke-width="${tickWidth}" stroke-linecap="round" stroke-linejoin="round" d="M${points(tick)}"/></svg>\n`;
}

/** Signed distances: below zero is inside. */
function toRoundedBox(px, py, { x, y, halfWidth, halfHeight, radius }) {
  const dx = Math.abs(px - x) - halfWidth + radius;
  const dy = Math.abs(py - y) - halfHeight + radius;
  return Math.hypot(Math.max(dx, 0), Math.max(dy, 0)) + Math.min(Math.max(dx, dy), 0) - radius;
}

function toSegment(px, py, [ax, ay], [bx, by]) {
  const along = ((px - ax) * (bx - ax) + (py - ay) * (by - ay)) / ((bx - ax) ** 2 + (by - ay) ** 2);
  const t = Math.min(1, Math.max(0, along));
  return Math.hypot(px - ax - t * (bx - ax), py - ay - t * (by - ay));
}

function toTriangle(px, py, corners) {
  const edges = corners.map((corner, at) => [corner, corners[(at + 1) % corners.length]]);
  const sides = edges.map(([[ax, ay], [bx, by]]) => (bx - ax) * (py - ay) - (by - ay) * (px - ax));
  const inside = sides.every((side) => side >= 0) || sides.every((side) => side <= 0);
  const distance = Math.min(...edges.map(([a, b]) => toSegment(px, py, a, b)));
  return inside ? -distance : distance;
}

/**
 * A PNG of `size` pixels a side. `corner` is the rounding of the ground in units of 24 (0 for a maskable icon, whose
 * platform cuts its own shape), `scale` shrinks the drawing into the safe middle.
 */
export function pngIcon(size, { corner = 5.5, scale = 1 } = {}) {
  const unit = 24 / size;
  const sharp = (distance) => Math.min(1, Math.max(0, 0.5 - distance / unit));
  const raw = Buffer.alloc(size * (size * 4 + 1));
  for (let row = 0; row < size; row += 1) {
    for (let column = 0; column < size; column += 1) {
      const px = (column + 0.5) * unit;
      const py = (row + 0.5) * unit;
      const ix = 12 + (px - 12) / scale;
      const iy = 12 + (py - 12) / scale;
      const alpha = sharp(toRoundedBox(px, py, { x: 12, y: 12, halfWidth: 12, halfHeight: 12, radius: corner }));
      const shape = Math.max(sharp(toRoundedBox(ix, iy, bubble) * scale), sharp(toTriangle(ix, iy, tail) * scale));
      const stroke = Math.min(toSegment(ix, iy, tick[0], tick[1]), toSegment(ix, iy, tick[1], tick[2])) - tickWidth / 2;
      const light = shape * (1 - sharp(stroke * scale));
      const at = row * (size * 4 + 1) + 1 + column * 4;
      for (let part = 0; part < 3; part += 1) {
        raw[at + part] = Math.round(ground[part] + (white[part] - ground[part]) * light);
      }
      raw[at + 3] = Math.round(255 * (corner === 0 ? 1 : alpha));
    }
  }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(size, 0);
  header.writeUInt32BE(size, 4);
  header.set([8, 6, 0, 0, 0], 8);
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([
    signature,
    chunk("IHDR", header),
    chunk("IDAT", deflateSync(raw, { level: 9 })),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}

function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const framed = Buffer.alloc(body.length + 8);
  framed.writeUInt32BE(data.length, 0);
  body.copy(framed, 4);
  framed.writeUInt32BE(crc32(body), body.length + 4);
  return framed;
}

const table = Array.from({ length: 256 }, (_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value;
});

function crc32(bytes) {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = table[(crc ^ byte) & 0xff] ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}
