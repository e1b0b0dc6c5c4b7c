/* What the processes of one job send each other: the messages of agents that have neighbours elsewhere, as bytes.
 *
 * A parcel begins with two bits for each agent that the other process hears (SILENT, SENT, SAME), and goes on with the
 * messages of those that SENT: packed codes, after their scale if that adapts; an entropy code, after its length; or the
 * model as it is. Replicas of agents elsewhere stand behind the agents here, in the order in which parcels come. */
#include "learners.h"

enum { LENGTH_BYTES = 2, SCALE_BYTES = 4 };

static i64 put_message(const Run* run, Scratch* s, i64 i, u8* out) {
    const real *theta = run->weights + i * run->size, *hat = run->broadcast + i * run->size;
    if (run->rounding == DENSE) {
        memcpy(out, theta, run->n_features * sizeof(real));
        return run->n_features * (i64)sizeof(real);
    }
    if (run->rounding == ENTROPY) {
        i64 outside;
        subtract_rows(theta, hat, s->innovation, run->size);
        const i64 step = choose_codes(run, s->innovation, s->codes, &outside), length = write_codes(step, s->codes, run->n_features, out + LENGTH_BYTES);
        out[0] = (u8)length;
        out[1] = (u8)(length >> 8);
        return LENGTH_BYTES + length;
    }
    i64 at = 0;
    if (run->low == run->high) {
        const float scale = (float)run->errors[i];
        memcpy(out, &scale, SCALE_BYTES);
        at = SCALE_BYTES;
    }
    return at + pack_codes(run, theta, hat, lattice_for(run, run->errors[i]), out + at);
}
/* Move a replica by a message of at most so many bytes; returns how many it has, -1 if they are too few or no code. */
static i64 take_message(const Run* run, Scratch* s, real* hat, const u8* data, i64 most) {
    i64 at = 0, length = run->n_features * (i64)sizeof(real);
    if (run->rounding == DENSE) {
        if (most < length) return -1;
        memcpy(hat, data, length);
        return length;
    }
    if (run->rounding == ENTROPY) {
        if (most < LENGTH_BYTES) return -1;
        length = data[0] | data[1] << 8;
        if (most < LENGTH_BYTES + length || !read_codes(data + LENGTH_BYTES, length, run->n_features, s->codes)) return -1;
        add_codes(data[LENGTH_BYTES], s->codes, run->n_features, hat);
        return LENGTH_BYTES + length;
    }
    float scale = 0;
    if (run->low == run->high) {
        if (most < SCALE_BYTES) return -1;
        memcpy(&scale, data, SCALE_BYTES);
        at = SCALE_BYTES;
    }
    length = (run->n_features * run->bits + 7) / 8;
    if (most < at + length || !add_packed(run, data + at, lattice_for(run, (real)scale), hat)) return -1;
    return at + length;
}

/* Parcels for n other processes, back to back: members[tell[k]] to members[tell[k + 1]] are the rows for one of them;
 * counts gets the bytes of each. Called between LEARN and APPLY, when models and replicas still make the messages. */
EXPORT void NAME(pack_parcels)(const Run* run, Scratch* s, i64 n, const i64* tell, const i64* members, u8* outgoing, i32* counts) {
    for (i64 other = 0; other < n; other++) {
        const i64 rows = tell[other + 1] - tell[other];
        u8* out = outgoing + (rows + 3) / 4;
        memset(outgoing, 0, (rows + 3) / 4);
        for (i64 k = 0; k < rows; k++) {
            const i64 i = members[tell[other] + k];
            outgoing[k / 4] |= (u8)(run->spoken[i] << (2 * (k % 4)));
            if (run->spoken[i] == SENT) out += put_message(run, s, i, out);
        }
        counts[other] = (i32)(out - outgoing);
        outgoing = out;
    }
}
/* Move the replicas of agents elsewhere by what came from n other processes; false if its lengths do not add up. */
EXPORT i64 NAME(open_parcels)(Run* run, Scratch* s, i64 n, const i64* hear, const u8* incoming, const i32* counts) {
    for (i64 other = 0; other < n; other++) {
        const i64 rows = hear[other + 1] - hear[other];
        i64 at = (rows + 3) / 4;
        if (counts[other] < at) return 0;
        for (i64 k = 0; k < rows; k++) {
            const i64 i = run->n_rows + hear[other] + k;
            run->spoken[i] = (incoming[k / 4] >> (2 * (k % 4))) & 3;
            if (run->spoken[i] != SENT) continue;
            const i64 length = take_message(run, s, run->broadcast + i * run->size, incoming + at, counts[other] - at);
            if (length < 0) return 0;
            at += length;
        }
        if (at != counts[other]) return 0;
        incoming += at;
    }
    return 1;
}
