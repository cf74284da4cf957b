// A decoding step: the parts of a layer, and a whole layer in one call.
//
// One token a row leaves little to compute, and torch would spend it on a dozen small operations
// that each walk over memory and wait for all cores. These functions are the same equations with
// everything at hand: the work is shared among threads, and each number is read once. `__init__.py`
// compiles this file, and gives it tensors.
//
// Every array is float unless it says otherwise, and its innermost axis is contiguous.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace {

// Work of fewer multiplications is done by one thread: the others would be awake too late, and
// on a busy machine the one that waits for them loses its turn.
constexpr std::int64_t WORTH_SHARING = 1 << 15;

// e^x to within about 2 units in the last place: x = n ln 2 + r, |r| <= ln 2 / 2, a
// polynomial for e^r, and n put into the exponent. The library's function is exact to one
// unit, but is called for one number at a time.
inline float exponential(float x) {
    x = x < -87.0f ? -87.0f : (x > 88.0f ? 88.0f : x);  // where the exponent ends
    const float n = std::nearbyintf(x * 1.44269504f);
    const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float e = 1.9875691500e-4f;
    e = e * r + 1.3981999507e-3f;
    e = e * r + 8.3334519073e-3f;
    e = e * r + 4.1665795894e-2f;
    e = e * r + 1.6666665459e-1f;
    e = e * r + 5.0000001201e-1f;
    e = e * r * r + r + 1.0f;
    const std::int32_t bits = (static_cast<std::int32_t>(n) + 127) << 23;
    float power;
    std::memcpy(&power, &bits, sizeof power);
    return e * power;
}

inline float logistic(float x) { return 1.0f / (1.0f + exponential(-x)); }

// As many numbers as a register holds.
#if defined(__AVX512F__)
constexpr std::size_t LANES = 16;
#elif defined(__AVX__)
constexpr std::size_t LANES = 8;
#else
constexpr std::size_t LANES = 4;
#endif
typedef float Lanes __attribute__((vector_size(LANES * sizeof(float))));

// How far ahead of its use a number is fetched from memory: 4 kB, a page.
constexpr std::int64_t AHEAD = 1024;

inline Lanes load(const float* from) {
    Lanes lanes;
    std::memcpy(&lanes, from, sizeof lanes);
    return lanes;
}

// Lane l is a[l] + a[l^s] where bit s of l is clear, and b[l] + b[l^s] where it is set.
template <std::size_t s, std::size_t... l>
inline Lanes merged(Lanes a, Lanes b, std::index_sequence<l...>) {
    return __builtin_shufflevector(a, b, (l & s ? l + LANES : l)...) +
           __builtin_shufflevector(a, b, (l & s ? (l ^ s) + LANES : (l ^ s))...);
}

// Sum the lanes of each of LANES registers: lane l of the result is the sum of sums[l]. Merging
// pairs, pairs of pairs and so on takes three instructions a sum.
template <std::size_t s = 1>
inline Lanes totals(Lanes* sums) {
    for (std::size_t k = 0; k < LANES / (2 * s); ++k)
        sums[k] = merged<s>(sums[2 * k], sums[2 * k + 1], std::make_index_sequence<LANES>());
    if constexpr (2 * s < LANES)
        return totals<2 * s>(sums);
    else
        return sums[0];
}

// out[r] = v . rows[r], for `number` rows of `length` numbers that lie `stride` apart.
inline void products(const float* v, const float* rows, std::int64_t stride, std::int64_t number,
                     std::int64_t length, float* out) {
    const std::int64_t lanes = LANES;
    if (number % lanes || length % lanes) {
        for (std::int64_t r = 0; r < number; ++r) {
            float sum = 0.0f;
            for (std::int64_t i = 0; i < length; ++i) sum += v[i] * rows[r * stride + i];
            out[r] = sum;
        }
        return;
    }
    for (std::int64_t r = 0; r < number; r += lanes) {
        Lanes sums[LANES] = {};
        // Row by row, as they lie in memory: that is what prefetching expects.
        for (std::int64_t k = 0; k < lanes; ++k)
            for (std::int64_t i = 0; i < length; i += lanes) {
                const float* row = rows + (r + k) * stride + i;
                __builtin_prefetch(row + AHEAD);
                sums[k] += load(v + i) * load(row);
            }
        const Lanes found = totals(sums);
        std::memcpy(out + r, &found, sizeof found);
    }
}

// As many numbers of a row as a register holds, whatever the row is kept in.
inline Lanes load(const std::uint16_t* from) {  // bfloat16: the upper half of a float
    typedef std::uint16_t Halves __attribute__((vector_size(LANES * sizeof(std::uint16_t))));
    typedef std::uint32_t Words __attribute__((vector_size(LANES * sizeof(std::uint32_t))));
    Halves halves;
    std::memcpy(&halves, from, sizeof halves);
    const Words words = __builtin_convertvector(halves, Words) << 16;
    Lanes lanes;
    std::memcpy(&lanes, &words, sizeof lanes);
    return lanes;
}

inline float number(float x) { return x; }
inline float number(std::uint16_t x) {
    const std::uint32_t word = static_cast<std::uint32_t>(x) << 16;
    float found;
    std::memcpy(&found, &word, sizeof found);
    return found;
}

// v . row. Four sums at once: a single one would wait for each addition to end. Rows follow one
// another, which the processor foresees by itself: fetching ahead made it 10 % slower.
template <typename Kept>
inline float product(const float* v, const Kept* row, std::int64_t length) {
    const std::int64_t lanes = LANES;
    Lanes sums[4] = {};
    std::int64_t i = 0;
    for (; i + 4 * lanes <= length; i += 4 * lanes)
        for (std::int64_t k = 0; k < 4; ++k)
            sums[k] += load(v + i + k * lanes) * load(row + i + k * lanes);
    for (; i + lanes <= length; i += lanes) sums[0] += load(v + i) * load(row + i);
    const Lanes all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    float sum = 0.0f;
    for (std::size_t l = 0; l < LANES; ++l) sum += all[l];
    for (; i < length; ++i) sum += v[i] * number(row[i]);
    return sum;
}

// Several rows use every weight several times. Weights lie in panels of PANEL outputs, input by
// input, so that a panel is read in order, from memory once and from the cache for the other rows.
// A tile is a panel times a few rows, with all its sums in registers.
constexpr std::int64_t PANEL = 2 * LANES;
constexpr std::int64_t TILE_ROWS = 6;  // two registers of outputs each: twelve sums, of sixteen

// How a panel of floats is multiplied: one input at a time.
struct Floats {
    typedef float Number;
    typedef float Input;
    typedef Lanes Sum;
    static constexpr std::int64_t numbers = 1;  // inputs at a time
    static Lanes weights(const float* from) { return load(from); }
    static Lanes add(Lanes sum, float x, Lanes w) { return sum + x * w; }
};

// How weights of 8 bits are multiplied with inputs of up to 16, as whole numbers and exactly: two
// inputs at a time, whose products one instruction adds. The two weights of an output lie side by
// side, as do the two inputs.
struct Bytes {
    typedef std::int8_t Number;
    typedef struct { std::int16_t pair[2]; } Input;
    typedef std::int32_t Sum __attribute__((vector_size(LANES * sizeof(std::int32_t))));
    static constexpr std::int64_t numbers = 2;
#if defined(__AVX512BW__)
    typedef __m512i Weights, Broadcast;
    static Weights weights(const std::int8_t* from) {
        return _mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
    }
    static Weights pairs(Weights a, Weights b) { return _mm512_madd_epi16(a, b); }
#elif defined(__AVX2__) && !defined(__AVX512F__)
    typedef __m256i Weights, Broadcast;
    static Weights weights(const std::int8_t* from) {
        return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    }
    static Weights pairs(Weights a, Weights b) { return _mm256_madd_epi16(a, b); }
#else
    typedef Sum Broadcast;
    struct Weights { std::int16_t numbers[2 * LANES]; };
    static Weights weights(const std::int8_t* from) {
        Weights w;
        std::copy(from, from + 2 * LANES, w.numbers);
        return w;
    }
    static Sum pairs(Sum both, Weights w) {
        std::int16_t x[2 * LANES];
        std::memcpy(x, &both, sizeof both);
        Sum sum;
        for (std::size_t l = 0; l < LANES; ++l)
            sum[l] = x[2 * l] * w.numbers[2 * l] + x[2 * l + 1] * w.numbers[2 * l + 1];
        return sum;
    }
#endif
    static Sum add(Sum sum, Input x, const Weights& w) {
        std::int32_t both;  // the two inputs, for every output
        std::memcpy(&both, &x, sizeof both);
        const Sum all = both + Sum{};
        return sum + (Sum)pairs((Broadcast)all, w);
    }
};

// sums (rows, PANEL) = x (rows, steps) times a panel of so many steps. A compiler keeps the sums in
// registers only if the loops over them are written out.
template <typename Kind, std::int64_t rows>
inline void tile(const typename Kind::Input* x, const typename Kind::Number* panel,
                 std::int64_t steps, typename Kind::Sum* sums) {
    typename Kind::Sum left[rows] = {}, right[rows] = {};
    for (std::int64_t i = 0; i < steps; ++i, panel += PANEL * Kind::numbers) {
        const auto first = Kind::weights(panel);
        const auto second = Kind::weights(panel + LANES * Kind::numbers);
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
            left[r] = Kind::add(left[r], x[r * steps + i], first);
            right[r] = Kind::add(right[r], x[r * steps + i], second);
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) sums[2 * r] = left[r], sums[2 * r + 1] = right[r];
}

// The same for `wanted` rows, at most TILE_ROWS.
template <typename Kind, std::int64_t rows = TILE_ROWS>
inline void tile_of(std::int64_t wanted, const typename Kind::Input* x, const typename Kind::Number* panel,
                    std::int64_t steps, typename Kind::Sum* sums) {
    if (wanted == rows) return tile<Kind, rows>(x, panel, steps, sums);
    if constexpr (rows > 1) tile_of<Kind, rows - 1>(wanted, x, panel, steps, sums);
}

// One row of x as whole numbers; returns what one of them is worth. They use as many levels as
// leave every sum below 2^31. A row that is not finite is worth something that is not either.
inline float rounded(const float* x, std::int64_t inputs, std::int16_t* to) {
    const float levels = static_cast<float>(std::min<std::int64_t>(
        32767, (std::int64_t{1} << 31) / (128 * inputs)));
    float largest = 0.0f, nothing = 0.0f;
#pragma omp simd reduction(max : largest) reduction(+ : nothing)
    for (std::int64_t i = 0; i < inputs; ++i) {
        const float size = std::fabs(x[i]);
        largest = size > largest ? size : largest;
        nothing += 0.0f * x[i];
    }
    if (inputs % 2) to[inputs] = 0;
    if (largest < 1e-30f || nothing != 0.0f) {
        std::fill(to, to + inputs, 0);
        return nothing;
    }
    const float scale = levels / largest;
#pragma omp simd
    for (std::int64_t i = 0; i < inputs; ++i)
        to[i] = static_cast<std::int16_t>(static_cast<std::int32_t>(std::nearbyintf(x[i] * scale)));
    return largest / levels;
}

enum Kept : int { FLOATS, BFLOATS, PANELS, BYTES };

// A linear map as its weights are kept: (outputs, inputs) in float or bfloat16, or panels of float
// or of 8 bits, these with a scale for each output. Scales and bias are filled up to whole panels.
struct Matrix {
    const void* weights;
    const float* scales;  // of 8 bits
    const float* bias;
    std::int64_t outputs, inputs;
    Kept kept;
    int threads;  // at most; 0: as many as there are

    // out (rows, outputs) = or += x (rows, inputs) W^T + b. What is not in panels takes one row.
    void apply(const float* x, float* out, std::int64_t rows, bool add, int all_threads) const {
        const int count = rows * outputs * inputs <= WORTH_SHARING ? 1
                          : threads                                ? threads
                                                                   : all_threads;
        if (kept == FLOATS) {
            one_row(x, static_cast<const float*>(weights), out, add, count);
        } else if (kept == BFLOATS) {
            one_row(x, static_cast<const std::uint16_t*>(weights), out, add, count);
        } else if (kept == PANELS) {
            in_panels<Floats>(x, inputs, rows, out, add, count,
                              [](Lanes sum, std::int64_t, std::int64_t) { return sum; });
        } else {
            static thread_local std::vector<std::int16_t> whole;
            static thread_local std::vector<float> worth;
            const std::int64_t pairs = (inputs + 1) / 2;
            whole.resize(2 * rows * pairs);
            worth.resize(rows);
            std::int16_t* numbers = whole.data();
            float* values = worth.data();
#pragma omp parallel for num_threads(count) if (count > 1 && rows * inputs > WORTH_SHARING)
            for (std::int64_t r = 0; r < rows; ++r)
                values[r] = rounded(x + r * inputs, inputs, numbers + 2 * r * pairs);
            in_panels<Bytes>(reinterpret_cast<const Bytes::Input*>(numbers), pairs, rows, out, add,
                             count, [=](Bytes::Sum sum, std::int64_t row, std::int64_t o) {
                                 return __builtin_convertvector(sum, Lanes) * values[row] *
                                        load(scales + o);
                             });
        }
    }

  private:
    // Every weight is read once and used once, so that memory decides the speed: each thread reads
    // one stretch of rows from its beginning to its end.
    template <typename Number>
    void one_row(const float* x, const Number* first, float* out, bool add, int count) const {
#pragma omp parallel for schedule(static) num_threads(count) if (count > 1)
        for (std::int64_t o = 0; o < outputs; ++o) {
            const float found = product(x, first + o * inputs, inputs) + bias[o];
            out[o] = add ? out[o] + found : found;
        }
    }

    template <typename Kind, typename Value>
    void in_panels(const typename Kind::Input* x, std::int64_t steps, std::int64_t rows, float* out,
                   bool add, int count, const Value& value) const {
        const auto* first = static_cast<const typename Kind::Number*>(weights);
#pragma omp parallel for schedule(static) num_threads(count) if (count > 1)
        for (std::int64_t start = 0; start < outputs; start += PANEL) {
            const auto* panel = first + start * steps * Kind::numbers;
            typename Kind::Sum sums[2 * TILE_ROWS];
            // Tiles of like height: with four sums only, each would wait for its last addition.
            std::int64_t tiles = (rows + TILE_ROWS - 1) / TILE_ROWS;
            for (std::int64_t r = 0, here; r < rows; r += here, --tiles) {
                here = (rows - r + tiles - 1) / tiles;
                tile_of<Kind>(here, x + r * steps, panel, steps, sums);
                for (std::int64_t k = 0; k < 2 * here; ++k) {
                    const std::int64_t row = r + k / 2, o = start + k % 2 * std::int64_t{LANES};
                    if (o >= outputs) continue;
                    const std::size_t bytes =
                        std::min<std::int64_t>(LANES, outputs - o) * sizeof(float);
                    float* place = out + row * outputs + o;
                    Lanes found = value(sums[k], row, o) + load(bias + o), before = {};
                    if (add) std::memcpy(&before, place, bytes), found += before;
                    std::memcpy(place, &found, bytes);
                }
            }
        }
    }
};

// out = sum of weights[j] rows[j], for as many columns as so many registers hold.
template <std::int64_t registers>
inline void average_columns(const float* weights, const float* rows, std::int64_t number,
                            std::int64_t width, float* out) {
    Lanes sums[registers] = {};
    for (std::int64_t j = 0; j < number; ++j)
        for (std::int64_t k = 0; k < registers; ++k) {
            const float* row = rows + j * width + k * LANES;
            __builtin_prefetch(row + AHEAD);
            sums[k] += weights[j] * load(row);
        }
    std::memcpy(out, sums, sizeof sums);
}

// The same for rows of any width, side by side.
inline void average(const float* weights, const float* rows, std::int64_t number,
                    std::int64_t width, float* out) {
    const std::int64_t lanes = LANES;
    std::int64_t i = 0;
    for (; i + 4 * lanes <= width; i += 4 * lanes)
        average_columns<4>(weights, rows + i, number, width, out + i);
    for (; i + lanes <= width; i += lanes)
        average_columns<1>(weights, rows + i, number, width, out + i);
    for (; i < width; ++i) {
        out[i] = 0.0f;
        for (std::int64_t j = 0; j < number; ++j) out[i] += weights[j] * rows[j * width + i];
    }
}

// Rotate one head's vector by the angles of its position: pairs (2i, 2i+1), or (i, i + pairs).
// Entries beyond the pairs are copied.
inline void rotate(const float* from, float* to, const float* cosines, const float* sines,
                   std::int64_t pairs, bool interleaved, std::int64_t width) {
    const std::int64_t step = interleaved ? 2 : 1, partner = interleaved ? 1 : pairs;
    std::memcpy(to + 2 * pairs, from + 2 * pairs, (width - 2 * pairs) * sizeof(float));
#pragma omp simd
    for (std::int64_t i = 0; i < pairs; ++i) {
        const float a = from[step * i], b = from[step * i + partner];
        to[step * i] = a * cosines[i] - b * sines[i];
        to[step * i + partner] = a * sines[i] + b * cosines[i];
    }
}

// Logits to weights, in place: softmax over `count` columns.
inline void softmax(float* logits, std::int64_t count) {
    float largest = -INFINITY, sum = 0.0f;
#pragma omp simd reduction(max : largest)
    for (std::int64_t j = 0; j < count; ++j) largest = logits[j] > largest ? logits[j] : largest;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t j = 0; j < count; ++j) {
        logits[j] = exponential(logits[j] - largest);
        sum += logits[j];
    }
    const float scale = 1.0f / sum;
#pragma omp simd
    for (std::int64_t j = 0; j < count; ++j) logits[j] *= scale;
}

}  // namespace

extern "C" {

// LayerNorm, g (x - mean) / sqrt(var + eps) + b, or without the mean and b: RMSNorm.
void norm(const float* from, const float* gains, const float* shifts, float* to,
          std::int64_t rows, std::int64_t width, float eps, int centred, int threads) {
#pragma omp parallel for num_threads(threads) if (rows * width > WORTH_SHARING)
    for (std::int64_t row = 0; row < rows; ++row) {
        const float* x = from + row * width;
        float* y = to + row * width;
        float mean = 0.0f, squares = 0.0f;
        if (centred) {
#pragma omp simd reduction(+ : mean)
            for (std::int64_t i = 0; i < width; ++i) mean += x[i];
            mean /= width;
        }
#pragma omp simd reduction(+ : squares)
        for (std::int64_t i = 0; i < width; ++i) squares += (x[i] - mean) * (x[i] - mean);
        const float scale = 1.0f / std::sqrt(squares / width + eps);
        if (shifts) {
#pragma omp simd
            for (std::int64_t i = 0; i < width; ++i)
                y[i] = (x[i] - mean) * scale * gains[i] + shifts[i];
        } else {
#pragma omp simd
            for (std::int64_t i = 0; i < width; ++i) y[i] = (x[i] - mean) * scale * gains[i];
        }
    }
}

// Store the new key and value of every row in column `column`, and read what its queries see.
//
//   matched     (rows, heads + kv_heads, width): queries, already divided by sqrt(d), and keys
//   new_values  (rows, kv_heads, width)
//   cosines     (rows or 1, pairs), as sines; with no pairs nothing is rotated
//   keys        (rows, kv_heads, capacity, width), as values: the cache of this layer
//   skipped     (rows): columns of padding; null without
//   bias        (heads, column + 1): what the position scheme adds to the logits; null without
//   out         (rows, heads, width)
//
// The capacity is a multiple of 16, so that whole registers of logits can be made; those of
// columns that are not seen are never used.
void attend(const float* matched, std::int64_t matched_stride, const float* new_values,
            std::int64_t values_stride, const float* cosines, const float* sines,
            std::int64_t pairs, std::int64_t rotation_stride, int interleaved, float* keys,
            float* values, std::int64_t row_stride, std::int64_t capacity,
            const std::int64_t* skipped, const float* bias, std::int64_t bias_stride, float* out,
            std::int64_t rows, std::int64_t heads, std::int64_t kv_heads, std::int64_t width,
            std::int64_t column, int threads) {
    const std::int64_t lanes = LANES, group = heads / kv_heads, count = column + 1;
    const std::int64_t end = (count + lanes - 1) / lanes * lanes;
#pragma omp parallel num_threads(threads) if (rows * heads * count * width > WORTH_SHARING)
    {
        std::vector<float> room(end + width);
        float *weights = room.data(), *query = weights + end;
#pragma omp for
        for (std::int64_t task = 0; task < rows * kv_heads; ++task) {
            const std::int64_t row = task / kv_heads, kv_head = task % kv_heads;
            const std::int64_t place = row * row_stride + kv_head * capacity * width;
            float *all_keys = keys + place, *all_values = values + place;
            const float* vectors = matched + row * matched_stride;
            const std::int64_t angles = row * rotation_stride;
            const auto place_vector = [&](std::int64_t from, float* to) {
                rotate(vectors + from * width, to, cosines + angles, sines + angles, pairs,
                       interleaved, width);
            };
            place_vector(heads + kv_head, all_keys + column * width);
            std::memcpy(all_values + column * width,
                        new_values + row * values_stride + kv_head * width,
                        width * sizeof(float));
            const std::int64_t first = skipped ? skipped[row] : 0, start = first / lanes * lanes;
            for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
                place_vector(head, query);
                products(query, all_keys + start * width, width, end - start, width,
                         weights + start);
                if (bias)
                    for (std::int64_t j = first; j < count; ++j)
                        weights[j] += bias[head * bias_stride + j];
                softmax(weights + first, count - first);
                average(weights + first, all_values + first * width, count - first, width,
                        out + (row * heads + head) * width);
            }
        }
    }
}

// SwiGLU: out = silu(first half) * second half, of (rows, 2 width).
void swiglu(const float* inner, float* out, std::int64_t rows, std::int64_t width, int threads) {
#pragma omp parallel for num_threads(threads) if (rows * width > WORTH_SHARING)
    for (std::int64_t row = 0; row < rows; ++row) {
        const float* a = inner + 2 * row * width;
        const float* b = a + width;
        float* y = out + row * width;
#pragma omp simd
        for (std::int64_t i = 0; i < width; ++i) y[i] = a[i] * logistic(a[i]) * b[i];
    }
}

// GELU with a hyperbolic tangent, in place: x / (1 + exp(-2 u)), u = sqrt(2/pi) (x + 0.044715 x^3).
void gelu_tanh(float* x, std::int64_t count, int threads) {
#pragma omp parallel for simd num_threads(threads) if (parallel : count > WORTH_SHARING)
    for (std::int64_t i = 0; i < count; ++i)
        x[i] *= logistic(1.5957691216f * (x[i] + 0.044715f * x[i] * x[i] * x[i]));
}

// out (rows, outputs) = x (rows, inputs) W^T + b.
void linear(const Matrix* matrix, const float* x, float* out, std::int64_t rows, int threads) {
    matrix->apply(x, out, rows, false, threads);
}

// Outputs of a panel: the order of weights in panels is (outputs / panel, steps, panel, numbers).
std::int64_t panel_width() { return PANEL; }

struct Norm {
    const float *gains, *shifts;  // no gains: no norm; no shifts: RMSNorm
    float eps;

    void apply(const float* from, float* to, std::int64_t rows, std::int64_t width,
               int threads) const {
        norm(from, gains, shifts, to, rows, width, eps, shifts != nullptr, threads);
    }
};

enum Activation : int { GELU_TANH, SWIGLU };

// One layer of a decoder; what it does is written in `BlockEquations`.
struct Layer {
    Norm attention_norm, query_norm, key_norm, feed_forward_norm;
    Matrix qkv, output, up, down;
    std::int64_t heads, kv_heads, head_width;
    Activation activation;
    int pre_norm;
};

// Run a layer for one token a row, in place; the rest as in `attend`.
void run_layer(const Layer* layer, float* stream, const float* cosines, const float* sines,
               std::int64_t pairs, std::int64_t rotation_stride, int interleaved, float* keys,
               float* values, std::int64_t row_stride, std::int64_t capacity,
               const std::int64_t* skipped, const float* bias, std::int64_t bias_stride,
               std::int64_t rows, std::int64_t column, int all_threads) {
    const Layer& l = *layer;
    // Where products are fastest by one thread, other programs run: nothing may wait for a second.
    const int threads = l.qkv.threads ? l.qkv.threads : all_threads;
    const std::int64_t width = l.qkv.inputs, queries = l.heads * l.head_width;
    const std::int64_t matched = queries + l.kv_heads * l.head_width;
    const std::int64_t inner = l.up.outputs, neurons = l.down.inputs;
    static thread_local std::vector<float> room;
    room.resize(rows * (width + l.qkv.outputs + queries + inner + neurons));
    float* normed = room.data();
    float* vectors = normed + rows * width;
    float* read = vectors + rows * l.qkv.outputs;
    float* raised = read + rows * queries;
    float* active = raised + rows * inner;

    const float* x = stream;
    if (l.pre_norm) l.attention_norm.apply(x, normed, rows, width, threads), x = normed;
    l.qkv.apply(x, vectors, rows, false, threads);
    if (l.query_norm.gains)
        for (std::int64_t row = 0; row < rows; ++row) {
            float* first = vectors + row * l.qkv.outputs;
            l.query_norm.apply(first, first, l.heads, l.head_width, 1);
            l.key_norm.apply(first + queries, first + queries, l.kv_heads, l.head_width, 1);
        }
    attend(vectors, l.qkv.outputs, vectors + matched, l.qkv.outputs, cosines, sines, pairs,
           rotation_stride, interleaved, keys, values, row_stride, capacity, skipped, bias,
           bias_stride, read, rows, l.heads, l.kv_heads, l.head_width, column, threads);
    l.output.apply(read, stream, rows, true, threads);
    if (!l.pre_norm) l.attention_norm.apply(stream, stream, rows, width, threads);

    x = stream;
    if (l.pre_norm) l.feed_forward_norm.apply(x, normed, rows, width, threads), x = normed;
    l.up.apply(x, raised, rows, false, threads);
    if (l.activation == SWIGLU)
        swiglu(raised, active, rows, neurons, threads);
    else
        gelu_tanh(raised, rows * inner, threads), active = raised;
    l.down.apply(active, stream, rows, true, threads);
    if (!l.pre_norm) l.feed_forward_norm.apply(stream, stream, rows, width, threads);
}

}  // extern "C"
