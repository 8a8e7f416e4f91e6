# The CUDA (and HIP) module is built from a copy of ggml's sources, with six changes:
#
# - Products of F32 weights stay exact. ggml's own matrix kernel takes 4 to 16
#   columns (and more of expert banks) through tensor cores that round F32 to 11
#   bits, whatever NVIDIA_TF32_OVERRIDE says: routers would choose other experts. cuBLAS is
#   not allowed to either.
# - Flash attention for some head sizes only, unless none are named: all of them
#   take most of the build's time and half of its size. The others are taken out of
#   ggml's supports_op first, then out of the dispatchers and the instances: what is
#   not built is refused when a graph is planned, never at run time.
# - CUDA graphs are replayed for several rows and for several graphs in turn:
#   graphs.cuh.
# - Products with experts take tiles as wide as an expert has rows: mmqtiles.cuh. Dense
#   ones share the kernel, so those of up to 40 rows get no more than 128 registers either.
# - Dense products of many rows decode the weights once, and multiply by cuBLAS: dense.cuh.
# - The operations of ../cuda are added: fused.cuh says how they are reached.
#
#   inkling_cuda_copy(<ggml tree> <folder for the copy> [<size of keys>...])
#
# A tree that is not written as the patterns below expect is an error that says so.

set(inkling_fattn_known 40 64 72 80 96 112 128 256 512 576)

# inkling_edit(<variable> <pattern> <replacement>): a regular expression that must match.
function(inkling_edit variable pattern replacement)
  string(REGEX REPLACE "${pattern}" "${replacement}" edited "${${variable}}")
  if(edited STREQUAL "${${variable}}")
    message(FATAL_ERROR "${file}: not written as ggml/cmake/cuda.cmake expects (${pattern}): take another tree, or change the pattern")
  endif()
  set(${variable} "${edited}" PARENT_SCOPE)
endfunction()

# inkling_swap(<variable> <text> <replacement>): plain text that must be there.
function(inkling_swap variable from to)
  string(FIND "${${variable}}" "${from}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "${file}: not written as ggml/cmake/cuda.cmake expects (${from}): take another tree, or change the text")
  endif()
  string(REPLACE "${from}" "${to}" edited "${${variable}}")
  set(${variable} "${edited}" PARENT_SCOPE)
endfunction()

# inkling_cut(<variable> <from> <to> <replacement>): all from one text up to another.
function(inkling_cut variable from to replacement)
  string(FIND "${${variable}}" "${from}" begin)
  string(FIND "${${variable}}" "${to}" end)
  if(begin EQUAL -1 OR end LESS begin)
    message(FATAL_ERROR "${file}: not written as ggml/cmake/cuda.cmake expects (${from} ... ${to}): take another tree, or change the texts")
  endif()
  string(SUBSTRING "${${variable}}" 0 ${begin} before)
  string(SUBSTRING "${${variable}}" ${end} -1 after)
  set(${variable} "${before}${replacement}${after}" PARENT_SCOPE)
endfunction()

function(inkling_cuda_copy tree copy)
  set(kept ${ARGN})
  file(SHA256 "${CMAKE_CURRENT_FUNCTION_LIST_FILE}" script)
  file(SHA256 "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/graphs.cuh" graphs)
  set(stamp "${tree} ${kept} ${script} ${graphs}")
  file(GLOB sources "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../cuda/*.cu*")
  foreach(source ${sources})
    file(SHA256 "${source}" sum)
    string(APPEND stamp " ${sum}")
  endforeach()
  if(EXISTS "${copy}/stamp")
    file(READ "${copy}/stamp" old)
    if(old STREQUAL stamp)
      return() # a new copy would compile everything again
    endif()
  endif()
  file(REMOVE_RECURSE "${copy}")
  # Trees in go's module cache are read-only.
  set(copying NO_SOURCE_PERMISSIONS
    FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ
    DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  file(COPY "${tree}/include" "${tree}/src" DESTINATION "${copy}" ${copying} PATTERN "ggml-vulkan" EXCLUDE PATTERN "ggml-metal" EXCLUDE)
  foreach(extra CMakeLists.txt cmake)
    if(EXISTS "${tree}/${extra}")
      file(COPY "${tree}/${extra}" DESTINATION "${copy}" ${copying})
    endif()
  endforeach()

  set(cuda "${copy}/src/ggml-cuda")
  set(file "${cuda}/common.cuh")
  file(READ "${file}" text)
  inkling_swap(text "CUBLAS_TF32_TENSOR_OP_MATH" "CUBLAS_DEFAULT_MATH")
  file(WRITE "${file}" "${text}")
  set(file "${cuda}/mmf.cu")
  file(READ "${file}" text)
  inkling_edit(text "        case GGML_TYPE_F32:\n            return ampere_mma_available\\(cc\\);" "        case GGML_TYPE_F32:\n            return false;")
  file(WRITE "${file}" "${text}")
  inkling_replay_graphs("${cuda}")
  file(COPY ${sources} DESTINATION "${cuda}" ${copying})
  inkling_fused_operations("${cuda}")
  inkling_expert_tiles("${cuda}")
  if(kept)
    inkling_keep_fattn("${cuda}" ${kept})
  endif()
  file(WRITE "${copy}/stamp" "${stamp}")
endfunction()

function(inkling_replay_graphs cuda)
  file(COPY "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/graphs.cuh" DESTINATION "${cuda}")
  set(file "${cuda}/common.cuh")
  file(READ "${file}" text)
  inkling_swap(text "    int number_consecutive_updates = 0;\n" [=[
    const void * first = nullptr; // node of the ggml graph
    const void * last  = nullptr;
    bool recorded = false;        // instance is the graph of ggml_graph_properties
]=])
  inkling_swap(text "    std::unique_ptr<ggml_cuda_graph> cuda_graph;\n" [=[
    std::unique_ptr<ggml_cuda_graph> cuda_graph;
    std::vector<std::unique_ptr<ggml_cuda_graph>> idle_cuda_graphs; // the one used last at the end
]=])
  file(WRITE "${file}" "${text}")

  set(file "${cuda}/ggml-cuda.cu")
  file(READ "${file}" text)
  inkling_cut(text "static bool check_node_graph_compatibility(" "static void set_ggml_graph_node_properties(" "#include \"graphs.cuh\"\n\n")
  inkling_swap(text "(node->op == GGML_OP_SCALE || node->op == GGML_OP_GLU)" "node->op != GGML_OP_VIEW")
  inkling_swap(text "graph_node_properties->node_address = node->data;" "graph_node_properties->node_address = inkling_operand(node);")
  inkling_swap(text "node->data != graph_node_properties->node_address" "inkling_operand(node) != graph_node_properties->node_address")
  inkling_swap(text "node->src[i] ? node->src[i]->data : nullptr" "node->src[i] ? inkling_operand(node->src[i]) : nullptr")
  inkling_swap(text "node->src[i]->data != graph_node_properties->src_address[i]" "inkling_operand(node->src[i]) != graph_node_properties->src_address[i]")
  inkling_swap(text [=[
    if (cuda_ctx->cuda_graph->instance == nullptr) {
        cuda_graph_update_required = true;
    }

    // Check if the graph size has changed]=] "    // Check if the graph size has changed")
  inkling_swap(text [=[
    // Objects required for CUDA Graph
    if (cuda_ctx->cuda_graph == nullptr) {
        cuda_ctx->cuda_graph.reset(new ggml_cuda_graph());
    }
]=] "    inkling_choose_graph(cuda_ctx, cgraph);\n")
  inkling_swap(text "        || cuda_ctx->cuda_graph->disable_due_to_too_many_updates\n" "")
  inkling_cut(text "        // Disable CUDA graphs (from the next token)" "    if (use_cuda_graph && cuda_graph_update_required) {\n        // Start CUDA graph capture" [=[
        inkling_record_graph(cuda_ctx->cuda_graph.get(), use_cuda_graph, cuda_graph_update_required);
    }

]=])
  inkling_swap(text "    bool graph_evaluated_or_captured = false;\n\n    evaluate_and_capture_cuda_graph(" [=[
    inkling_count_graph(use_cuda_graph, cuda_graph_update_required);
    bool graph_evaluated_or_captured = false;

    evaluate_and_capture_cuda_graph(]=])
  inkling_swap(text "    if (strcmp(name, \"ggml_backend_split_buffer_type\") == 0) {" [=[
    if (strcmp(name, "inkling_cuda_graph_counts") == 0) {
        return (void *)inkling_cuda_graph_counts;
    }
    if (strcmp(name, "ggml_backend_split_buffer_type") == 0) {]=])
  file(WRITE "${file}" "${text}")
endfunction()

function(inkling_fused_operations cuda)
  set(file "${cuda}/ggml-cuda.cu")
  file(READ "${file}" text)
  inkling_swap(text "#include \"ggml-cuda/common.cuh\"\n" "#include \"ggml-cuda/common.cuh\"\n#include \"ggml-cuda/dense.cuh\"\n#include \"ggml-cuda/fused.cuh\"\n")
  inkling_swap(text [=[
        case GGML_OP_ARGMAX:
            ggml_cuda_argmax(ctx, dst);
]=] [=[
        case GGML_OP_CUSTOM:
            inkling_fused(ctx, dst);
            break;
        case GGML_OP_ARGMAX:
            ggml_cuda_argmax(ctx, dst);
]=])
  inkling_swap(text "        case GGML_OP_ARGMAX:\n        case GGML_OP_COUNT_EQUAL:\n" [=[
        case GGML_OP_CUSTOM:
            return inkling_fused_supports(dev_ctx->device, op);
        case GGML_OP_ARGMAX:
        case GGML_OP_COUNT_EQUAL:
]=])
  inkling_swap(text "    } else if (!split && use_mul_mat_q) {\n" "    } else if (!split && use_mul_mat_q && inkling_dense(ctx, src0, src1, dst)) {\n    } else if (!split && use_mul_mat_q) {\n")
  inkling_swap(text "    if (strcmp(name, \"inkling_cuda_graph_counts\") == 0) {" [=[
    if (strcmp(name, "inkling_fused_count") == 0) {
        return (void *)inkling_fused_count;
    }
    if (strcmp(name, "inkling_cuda_graph_counts") == 0) {]=])
  file(WRITE "${file}" "${text}")
endfunction()

function(inkling_expert_tiles cuda)
  set(file "${cuda}/mmq.cuh")
  file(READ "${file}" text)
  inkling_swap(text "#include \"vecdotq.cuh\"\n" "#include \"vecdotq.cuh\"\n#include \"mmqtiles.cuh\"\n")
  inkling_swap(text "    const int mmq_x_max = get_mmq_x_max_host(cc);\n" [=[
    int mmq_x_max = get_mmq_x_max_host(cc);
    if (args.expert_bounds) {
        mmq_x_max = std::min(mmq_x_max, inkling_expert_columns(args.ncols_dst, args.nchannels_x, mmq_get_granularity_host(8, cc)));
    }
]=])
  inkling_swap(text "    const dim3 block_nums_stream_k(nsm, 1, 1);\n    const bool fixup_needed = ntx*nty*ntzw % nsm != 0;\n" [=[
    const int blocks_held = args.expert_bounds ? inkling_blocks_held((const void *) mul_mat_q<type, mmq_x, true>, warp_size*nwarps, nbytes_shared) : 1;
    const dim3 block_nums_stream_k(nsm*blocks_held, 1, 1);
    const bool fixup_needed = ntx*nty*ntzw % block_nums_stream_k.x != 0;
]=])
  inkling_swap(text [=[
            if (jt*mmq_x >= col_diff) {
                kbc += blocks_per_ne00;]=] [=[
            if (jt*mmq_x >= col_diff) { // nor do further tiles of this expert have columns
                kbc += (ntx - jt)*blocks_per_ne00;]=])
  inkling_swap(text "    __launch_bounds__(ggml_cuda_get_physical_warp_size()*mmq_get_nwarps_device(), 1)"
    "    __launch_bounds__(ggml_cuda_get_physical_warp_size()*mmq_get_nwarps_device(), mmq_x <= 40 ? 2 : 1)")
  file(WRITE "${file}" "${text}")
endfunction()

function(inkling_keep_fattn cuda)
  set(kept ${ARGN})
  set(others ${inkling_fattn_known})
  list(REMOVE_ITEM others ${kept})
  list(TRANSFORM kept PREPEND "case " OUTPUT_VARIABLE cases)
  list(JOIN cases ": " cases)

  set(file "${cuda}/fattn.cu")
  file(READ "${file}" text)
  inkling_edit(text "    switch \\(K->ne\\[0\\]\\) {\n        case +40:"
    "    switch (K->ne[0]) { // the sizes of this build\n        ${cases}: break;\n        default: return BEST_FATTN_KERNEL_NONE;\n    }\n\\0")
  foreach(size ${others})
    if(NOT size EQUAL 40 AND NOT size EQUAL 72) # those have no kernel on tensor cores
      inkling_edit(text "        case +${size}:\n[^\n]*GGML_ASSERT[^\n]*\n[^\n]*switch_ncols2<[^\n]*\n[^\n]*break;\n" "")
    endif()
  endforeach()
  file(WRITE "${file}" "${text}")

  set(file "${cuda}/fattn-tile.cu")
  file(READ "${file}" text)
  foreach(size ${others})
    inkling_edit(text "        case +${size}: {\n[^\n]*\n[^\n]*tile_case<[^\n]*\n[^\n]*break;\n" "")
  endforeach()
  file(WRITE "${file}" "${text}")

  foreach(size ${others})
    file(GLOB tiles "${cuda}/template-instances/fattn-tile-instance-dkq${size}-*.cu")
    if(tiles)
      file(REMOVE ${tiles})
    endif()
  endforeach()
  file(GLOB instances "${cuda}/template-instances/fattn-mma-f16-instance-*.cu")
  foreach(file ${instances})
    file(READ "${file}" text)
    foreach(size ${others})
      string(REGEX REPLACE "DECL_FATTN_MMA_F16_CASE\\(${size},[^\n]*\n" "" text "${text}")
    endforeach()
    file(WRITE "${file}" "${text}")
  endforeach()
endfunction()
