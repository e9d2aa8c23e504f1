/* The two calls of the SPU library, for programs that run without the chip.
 *
 * This header is part of Chipless and not the vendor's: the vendor's header is not public. What the text of the IOSpec
 * format says of the calls holds here; the types of the arguments and all status codes but kSpuSequenceError are our own.
 * To build for the chip, put the vendor's header and library in the place of spu.h and spu_mock.c.
 */
#ifndef SPU_H
#define SPU_H

#ifdef __cplusplus
extern "C" {
#endif

enum {
    kSpuOk = 0,
    /* The call breaks the order that the IOSpec gives. */
    kSpuSequenceError = 1,
    /* Anything else: no such sequence, outputs that are not ready, a simulator that could not be started or does not
     * answer. The standard error says which. */
    kSpuMockFailure = 2
};

/* Sends the inputs of a sequence, in the order of the sequence. Each vector has the length and the type of elements that
 * model.h gives. Returns kSpuOk, or why nothing was sent. */
int SpuWriteData(unsigned sequence_id, const void *const vectors[]);

/* Receives the outputs of a sequence, in the order of the sequence, into vectors as model.h describes them. Returns kSpuOk,
 * or why nothing was received. */
int SpuReadData(unsigned sequence_id, void *const vectors[]);

#ifdef __cplusplus
}
#endif

#endif
